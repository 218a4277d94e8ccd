package cluster

import (
	"context"
	"sync"
)

// life is what all parts of a node have in common: the context they run under,
// and the one error that ended it.
//
// Invariant: done is closed exactly when the node can serve no more, either
// because fail was called or because it was shut down.
type life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	// loops are the goroutines that Shutdown waits for.
	loops sync.WaitGroup

	mu   sync.Mutex
	err  error
	done chan struct{}
	over bool
}

func newLife() *life {
	l := &life{done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// fail ends the node because of err. Only the first error counts.
func (l *life) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over, l.err = true, err
	close(l.done)
	l.cancel(err)
}

// close ends the node without an error, unless it ended by itself before.
func (l *life) close() { l.fail(nil) }

func (l *life) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// run starts a goroutine that ends soon after the life's context.
func (l *life) run(loop func(ctx context.Context)) {
	l.loops.Go(func() { loop(l.ctx) })
}
