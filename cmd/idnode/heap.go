package main

import "runtime"

// heapRoom is how much is set aside to make the garbage collector patient. It
// collects when the heap has doubled, and the heap of a node with few names is so
// small that under load it doubles many times a second. Memory that is set aside and
// never touched counts as heap and takes no room in the machine: a small node
// collects as rarely as one of this size, and a large one hardly notices. GOGC, which
// is a factor, would cost the large one as much again.
const (
	heapRoom  = 64 << 20
	roomPiece = 4 << 20
)

// room is what is set aside, in pieces. What is held for callers takes their place:
// otherwise the collector would wait until that has doubled too.
type room struct {
	pieces [][]byte
	held   func() int64
	// collect starts a collection; ended says that there is no room any more.
	collect func()
	ended   chan struct{}
}

// patientCollector sets heapRoom aside, less what is held, until the function it returns
// is called.
func patientCollector(held func() int64) (release func()) {
	r := &room{held: held, collect: runtime.GC, ended: make(chan struct{})}
	r.fit()
	r.watch()
	return func() { close(r.ended) }
}

// watch fits the room after each collection.
func (r *room) watch() {
	type garbage struct{ *room }
	runtime.AddCleanup(&garbage{r}, func(r *room) {
		select {
		case <-r.ended:
			return
		default:
		}
		if r.fit() {
			go r.collect() // The last collection has seen the room that is gone.
		}
		r.watch()
	}, r)
}

// fit makes the room as large as what is held leaves, and says whether it is much
// smaller now.
func (r *room) fit() bool {
	want := int(max(0, heapRoom-r.held()) / roomPiece)
	gone := len(r.pieces) - want
	for len(r.pieces) < want {
		r.pieces = append(r.pieces, make([]byte, roomPiece))
	}
	clear(r.pieces[want:])
	r.pieces = r.pieces[:want]
	return gone > 1
}
