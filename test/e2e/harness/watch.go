package harness

import (
	"slices"
	"sync"
	"time"

	"github.com/idnode/idnode/test/history"
)

// Watch follows the calls on one node from the moment of a fault on. Safe for
// concurrent use.
type Watch struct {
	run   *Run
	tag   string
	begin time.Time
	since int64

	mu   sync.Mutex
	seen Seen
	// took are the times of the answered calls that need a quorum.
	took []time.Duration
}

// Seen is the outcome of the calls on a node since a fault. Times in which the
// machine stood still are not counted.
type Seen struct {
	// InFlight is how long after the fault the last call ended that was in flight
	// then and whose outcome is unknown, and Waiting the same of those that were
	// refused or answered.
	InFlight, Waiting time.Duration
	// Taken and Etags count the answered calls that need a quorum, and that give
	// server-side ids; Refused those that failed for want of the cluster or of the
	// node, whether their outcome is known or not.
	Taken, Etags, Refused int64
}

// Watch begins to follow the calls on n.
func (r *Run) Watch(n *Node) *Watch {
	w := &Watch{run: r, tag: n.Tag, begin: time.Now(), since: r.recorder.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
	return w
}

// Seen is what was seen so far.
func (w *Watch) Seen() Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// Times are how long the answered calls took that need a quorum and began after the
// fault or were in flight then.
func (w *Watch) Times() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.took)
}

// see takes in a call that has just ended.
func (w *Watch) see(op *history.Op) {
	if op.Node != w.tag || !op.Kind.IsCall() {
		return
	}
	now := time.Now()
	late := now.Sub(w.begin) - w.run.Stalls.Between(w.begin, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if op.Call < w.since && op.Outcome == history.Unknown {
		w.seen.InFlight = max(w.seen.InFlight, late)
	} else if op.Call < w.since {
		w.seen.Waiting = max(w.seen.Waiting, late)
	}
	switch {
	case op.Outcome == history.Unknown || passing(op.Code):
		w.seen.Refused++
	case op.Outcome == history.Failed: // it asked for what it could not have
	case op.Kind == history.Etag:
		w.seen.Etags++
	default:
		w.seen.Taken++
		took := time.Duration(op.Return - op.Call)
		w.took = append(w.took, took-w.run.Stalls.Between(now.Add(-took), now))
	}
}
