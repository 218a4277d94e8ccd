package leader

import (
	"context"
	"sync/atomic"
)

// Signal passes on changes of leadership. Raft's main loop blocks until a change is
// received, so receiving and acting on it are two goroutines.
type Signal struct {
	notify chan bool
	// count counts the changes, and holds is the newest: a change that is followed by
	// another before it is read still changes count.
	count atomic.Uint64
	holds atomic.Bool
	wake  chan struct{}
}

// NewSignal returns the Signal of a node that does not lead.
func NewSignal() *Signal {
	return &Signal{notify: make(chan bool, 1), wake: make(chan struct{}, 1)}
}

// Channel is where Raft's main loop sends the changes.
func (o *Signal) Channel() chan<- bool { return o.notify }

// Listen receives the changes until ctx ends; a Raft that is shutting down does not block
// on them.
func (o *Signal) Listen(ctx context.Context) {
	for {
		select {
		case holds := <-o.notify:
			o.holds.Store(holds)
			o.count.Add(1)
			select {
			case o.wake <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}
