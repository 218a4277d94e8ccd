package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/idnode/idnode/test/history"
)

// recorder keeps the history of a seed in memory. Virtual time stands still
// while the nodes work, so it gives every call and return a time of its own:
// without that, calls one after the other would look as if they were at once.
type recorder struct {
	mu   sync.Mutex
	last int64
	ops  []history.Op
	// given is when a caller was last given an identity.
	given time.Time
}

// now returns the time, later than all that were returned before.
func (r *recorder) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nowLocked()
}

func (r *recorder) nowLocked() int64 {
	r.last = max(r.last+1, time.Now().UnixNano())
	return r.last
}

// add records a call that has returned, or an event.
func (r *recorder) add(op history.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Return = r.nowLocked()
	if op.Kind == history.Next && op.Outcome == history.OK {
		r.given = time.Now()
	}
	r.ops = append(r.ops, op)
}

// lastGiven is when a caller was last given an identity; zero if none was.
func (r *recorder) lastGiven() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.given
}

func (r *recorder) all() []history.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}
