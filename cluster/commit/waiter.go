package commit

import (
	"context"
	"sync"
	"time"
)

// waiterState is the state of an operation.
type waiterState uint8

const (
	// queued means that the operation is in the queue and can be removed.
	queued waiterState = iota
	// taken means that it is in a group, whose outcome answers it.
	taken
	// abandoned means that its caller left after it was taken.
	abandoned
)

// waiter is one operation and the caller that waits for it. The Gatherer's lock guards
// its links and its state. result and err belong to the answering goroutine until it sends
// on done, and then to the caller.
//
// Invariant: done is sent on at most once per use, and a waiter returns to the pool only
// after that send was received, or if it never was in a group. Otherwise a late answer
// would reach the wrong caller.
type waiter struct {
	prev, next *waiter
	operation  []byte
	// resultBound is Config.ResultBound of the operation.
	resultBound int
	// caller is the context of the caller, for spans of groups.
	caller context.Context
	state  waiterState
	// enqueuedAt is the Gatherer's clock when the wait began.
	enqueuedAt time.Duration
	result     []byte
	err        error
	done       chan struct{}
}

// waiterPool saves the allocations of a waiter and its channel.
type waiterPool struct{ pool sync.Pool }

func (p *waiterPool) get(caller context.Context, operation []byte) *waiter {
	w, ok := p.pool.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.caller, w.operation = caller, operation
	return w
}

func (p *waiterPool) put(w *waiter) {
	*w = waiter{done: w.done}
	p.pool.Put(w)
}

// answer ends the wait of w's caller. The answering goroutine must not use w afterwards.
func (w *waiter) answer(result []byte, err error) {
	w.result, w.err = result, err
	w.done <- struct{}{}
}

func answerAll(waiters []*waiter, err error) {
	for _, w := range waiters {
		w.answer(nil, err)
	}
}
