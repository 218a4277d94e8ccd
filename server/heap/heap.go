// Package heap lets a small heap grow before the garbage collector runs.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heapRoom is how many bytes the heap may grow by beyond its double before the
	// garbage collector runs. Without it the small heap of a node with few names doubles
	// many times a second under load. A higher GOGC, which is a factor, would let the
	// heap of a large node grow by as much again.
	heapRoom = 64 << 20
	// leastInUse is the least that the room is set against: below it the runtime's own
	// least heap, which is 4 MiB times GOGC, would be larger than the room.
	leastInUse = 4 << 20
	// defaultPercent is the runtime's GOGC.
	defaultPercent = 100
)

// growth sets, after each collection, how far the heap may grow until the next collection.
type growth struct {
	held    func() int64
	percent int
}

// Relax gives the heap its room, less what is held for callers, until the
// function it returns is called. It leaves alone what an operator sets by GOGC.
func Relax(held func() int64) (release func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	g := &growth{held: held}
	stop := afterCollections(g.adjust)
	return func() {
		stop()
		debug.SetGCPercent(defaultPercent)
	}
}

// adjust sets the percentage. A change stops all goroutines for a moment, so a small one is
// not made.
func (g *growth) adjust() {
	if want := percentFor(inUse(), heapRoom-g.held()); 16*max(want-g.percent, g.percent-want) > g.percent {
		g.percent = want
		debug.SetGCPercent(want)
	}
}

// percentFor is the GOGC with which the heap may grow by what is in use and by room.
func percentFor(inUse uint64, room int64) int {
	base := int64(max(inUse, leastInUse))
	return int(defaultPercent * (base + max(0, room)) / base)
}

// inUse is what GOGC multiplies: what the last collection found alive, stacks and
// global variables.
func inUse() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

// collections calls a function after each collection.
type collections struct {
	adjust func()

	mu    sync.Mutex
	ended bool
}

// afterCollections calls adjust now and after each collection, one call at a time, until stop
// is called. No call runs when stop has returned.
func afterCollections(adjust func()) (stop func()) {
	c := &collections{adjust: adjust}
	c.run()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}
}

// run calls adjust, and runs again after the next collection.
func (c *collections) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.adjust()
	type garbage struct{ *collections }
	runtime.AddCleanup(&garbage{c}, (*collections).run, c)
}
