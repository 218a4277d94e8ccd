package fsm

import (
	"context"
	"slices"
	"sync"
)

// applied is the applied index, and the waiters for it. The zero value is ready.
type applied struct {
	mu      sync.Mutex
	index   uint64
	waiting []waiter
}

type waiter struct {
	index uint64
	done  chan struct{}
}

func (a *applied) load() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.index
}

// set moves the index, back only by a restore, and releases the waiters for it, or a lower index.
func (a *applied) set(index uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index = index
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiter) bool {
		reached := w.index <= a.index
		if reached {
			close(w.done)
		}
		return reached
	})
}

func (a *applied) wait(ctx context.Context, index uint64) error {
	w, reached := a.enter(index)
	if reached {
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		a.leave(w)
		return ctx.Err()
	}
}

// enter adds a waiter, unless the index is reached already.
func (a *applied) enter(index uint64) (w waiter, reached bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.index >= index {
		return waiter{}, true
	}
	w = waiter{index: index, done: make(chan struct{})}
	a.waiting = append(a.waiting, w)
	return w, false
}

func (a *applied) leave(gone waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiter) bool { return w.done == gone.done })
}
