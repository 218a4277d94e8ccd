package fsm

import (
	"context"
	"sync"
)

// applied is the applied index, and wakes those who wait for one.
type applied struct {
	mu      sync.Mutex
	index   uint64
	changed *sync.Cond
}

func newApplied() *applied {
	a := &applied{}
	a.changed = sync.NewCond(&a.mu)
	return a
}

func (a *applied) load() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.index
}

// set moves the index, back only by a restore.
func (a *applied) set(index uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index = index
	a.changed.Broadcast()
}

// wake has those who wait look at their contexts.
func (a *applied) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

func (a *applied) wait(ctx context.Context, index uint64) error {
	if a.load() >= index {
		return nil
	}
	defer context.AfterFunc(ctx, a.wake)()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.index < index {
		if err := ctx.Err(); err != nil {
			return err
		}
		a.changed.Wait()
	}
	return nil
}
