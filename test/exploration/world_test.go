package exploration

import (
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/idnode/idnode/test/model"
)

const (
	members = 3
	nodes   = 2 // that take calls
	// maxLog is the longest log, behind the entries with which a world begins.
	maxLog      = 12
	maxMessages = 8
)

// world is all that can differ between two moments. It has no pointers and no padding, so
// that its bytes are hashed. What is not used is zero.
type world struct {
	members  [members]member
	nodes    [nodes]node
	messages [maxMessages]message // ordered, without gaps
	calls    [maxCalls]callState
	term     uint8
	// committed is how many entries are, and decided has their terms. By log matching a
	// term and a place say which entry it is.
	committed uint8
	decided   [maxLog]uint8
	budget    budget
	recovered bool
	_         bool
}

// member is a member's Raft and state machine.
type member struct {
	entries [maxLog]contentID
	state   stateID
	// snapshot is the state in the member's snapshot, which has the first base entries.
	snapshot stateID
	terms    [maxLog]uint8 // of the entries
	model.Member[uint8]
	_ bool
}

// node is what a member does for its callers.
type node struct {
	content contentID // what it sends, a group or an announcement
	session uint8     // a number of explorer.sessions; 0 is none
	group   uint8     // a number of explorer.groups; 0 is none
	calls   [maxCalls]said
	queue   [maxCalls]uint8 // 1 + the call
	// hint is 1 + the member that it knows to lead.
	hint uint8
	// target is 1 + the member of the attempt in flight, and taken says that this has put
	// it into its log.
	target uint8
	taken  bool
	// attempt counts those of the group; announced those of announcements.
	attempt   uint8
	announced uint8
	starts    uint8
}

// message is a group or an announcement on its way.
type message struct {
	content contentID
	target  uint8 // 1 + the member
	attempt uint8
}

// callState is where a call is, and what its caller has got.
type callState struct {
	status status
	got    gainID
	since  uint8
}

type status uint8

const (
	idle status = iota
	open
	answered
	notApplied
	unknown
)

// hash is what worlds are told apart by.
func (w *world) hash() uint64 {
	return xxhash.Sum64(unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w)))
}

// leader returns the member that leads the newest term; -1 if none does.
func (w *world) leader() int {
	for m := range w.members {
		if p := &w.members[m]; p.Leads && p.Term == w.term {
			return m
		}
	}
	return -1
}

// post adds a message, in order.
func (w *world) post(msg message) {
	i := 0
	for ; w.messages[i].content != 0; i++ {
		if i == maxMessages-1 {
			panic("too many messages for a world")
		}
	}
	for ; i > 0 && msg.before(w.messages[i-1]); i-- {
		w.messages[i] = w.messages[i-1]
	}
	w.messages[i] = msg
}

func (a message) before(b message) bool {
	if a.content != b.content {
		return a.content < b.content
	}
	if a.target != b.target {
		return a.target < b.target
	}
	return a.attempt < b.attempt
}

// drop removes a message.
func (w *world) drop(i int) {
	copy(w.messages[i:], w.messages[i+1:])
	w.messages[maxMessages-1] = message{}
}

// forget removes messages that nobody waits for, to members that will not lead again. A
// message that is lost is one that comes last, so losses have no step of their own.
func (w *world) forget() {
	leader := w.leader()
	if leader < 0 || w.budget.changes > 0 || w.budget.crashes > 0 {
		return
	}
	for i := 0; w.messages[i].content != 0; {
		msg := w.messages[i]
		if w.members[msg.target-1].Leads || w.awaited(msg) {
			i++
		} else {
			w.drop(i)
		}
	}
}

// awaited reports whether a message may be that of an attempt in flight.
func (w *world) awaited(msg message) bool {
	for o := range w.nodes {
		if w.nodes[o].content == msg.content && w.nodes[o].target == msg.target {
			return true
		}
	}
	return false
}

// enqueue puts a call at the end of a node's queue.
func (n *node) enqueue(call uint8) {
	for i := range n.queue {
		if n.queue[i] == 0 {
			n.queue[i] = 1 + call
			return
		}
	}
}

// enqueueFirst puts a call at the head of a node's queue.
func (n *node) enqueueFirst(call uint8) {
	copy(n.queue[1:], n.queue[:])
	n.queue[0] = 1 + call
}

// dequeue takes a call out, and reports whether it was there.
func (n *node) dequeue(call uint8) bool {
	for i, c := range n.queue {
		if c == 1+call {
			copy(n.queue[i:], n.queue[i+1:])
			n.queue[maxCalls-1] = 0
			return true
		}
	}
	return false
}
