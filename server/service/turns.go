package service

import (
	"context"
	"sync"
)

// turns lets one call of each caller go on at a time: calls that read for long, and that
// others of the same caller can wait for.
type turns struct {
	mu sync.Mutex
	// busy has, of each caller whose call goes on, what is closed when it ends.
	busy map[string]chan struct{}
}

// wait returns when it is a caller's turn, with what ends it; or the error of ctx.
func (t *turns) wait(ctx context.Context, caller string) (end func(), err error) {
	for {
		before, mine := t.begin(caller)
		if before == nil {
			return func() { t.end(caller, mine) }, nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin returns what the caller's present call closes at its end; a new one if there is none.
func (t *turns) begin(caller string) (before, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.busy[caller]; before != nil {
		return before, nil
	}
	if t.busy == nil {
		t.busy = map[string]chan struct{}{}
	}
	mine = make(chan struct{})
	t.busy[caller] = mine
	return nil, mine
}

func (t *turns) end(caller string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, caller)
	close(mine)
}
