package service

import (
	"context"
	"sync"
)

// turns bounds the calls that work for long: mostTurns on the node, and one for each caller. The
// others wait. Callers take turns, so a caller that asks very often waits only for itself
// (round-robin, which is fair queueing for calls of equal cost).
type turns struct {
	// going has a place for each call that goes on. Who waits for one gets it in the order of asking.
	going chan struct{}

	mu sync.Mutex
	// lines are the callers with calls that run or wait.
	lines map[string]*line
}

type line struct {
	// first has one place, for the call that runs, or waits for its turn.
	first chan struct{}
	calls int
}

// mostTurns leaves half of a small machine's processors to other calls, because those that
// take long rest half of the time.
const mostTurns = 4

func newTurns() *turns {
	return &turns{going: make(chan struct{}, mostTurns), lines: map[string]*line{}}
}

// wait returns when it is a call's turn, with what ends it; or the error of ctx.
func (t *turns) wait(ctx context.Context, caller string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err // Not by chance, where it is its turn at once.
	}
	l := t.join(caller)
	if err := enter(ctx, l.first); err != nil {
		t.leave(caller, l)
		return nil, err
	}
	if err := enter(ctx, t.going); err != nil {
		<-l.first
		t.leave(caller, l)
		return nil, err
	}
	return func() {
		<-t.going
		<-l.first
		t.leave(caller, l)
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

func (t *turns) join(caller string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[caller]
	if l == nil {
		l = &line{first: make(chan struct{}, 1)}
		t.lines[caller] = l
	}
	l.calls++
	return l
}

func (t *turns) leave(caller string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.calls--; l.calls == 0 {
		delete(t.lines, caller)
	}
}
