package admission

import (
	"context"
	"sync"
)

// turns bounds the calls that work for long: mostTurns on the node, and one for each caller. The
// others wait. Callers take turns, so a caller that asks very often waits only for itself
// (round-robin, which is fair queueing for calls of equal cost).
type turns struct {
	// running is a semaphore of mostTurns; its waiters are served first come, first served.
	running chan struct{}

	mu sync.Mutex
	// queues has an entry for each caller with calls that run or wait.
	queues map[string]*queue
}

type queue struct {
	// slot is held by the caller's one call that runs, or waits to run.
	slot  chan struct{}
	calls int
}

// mostTurns leaves half of a small machine's processors to other calls, because those that
// take long rest half of the time.
const mostTurns = 4

func newTurns() *turns {
	return &turns{running: make(chan struct{}, mostTurns), queues: map[string]*queue{}}
}

// wait returns a function that ends the turn, once the call may run; or the error of ctx.
func (t *turns) wait(ctx context.Context, caller string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err // Not by chance, where it is its turn at once.
	}
	q := t.join(caller)
	if err := enter(ctx, q.slot); err != nil {
		t.leave(caller, q)
		return nil, err
	}
	if err := enter(ctx, t.running); err != nil {
		<-q.slot
		t.leave(caller, q)
		return nil, err
	}
	return func() {
		<-t.running
		<-q.slot
		t.leave(caller, q)
	}, nil
}

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turns) join(caller string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[caller]
	if q == nil {
		q = &queue{slot: make(chan struct{}, 1)}
		t.queues[caller] = q
	}
	q.calls++
	return q
}

func (t *turns) leave(caller string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.calls--; q.calls == 0 {
		delete(t.queues, caller)
	}
}
