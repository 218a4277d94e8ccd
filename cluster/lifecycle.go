package cluster

import (
	"context"
	"sync"
)

// lifecycle is shared by all parts of a node: the context they run under, and the one
// error that ended it.
//
// Invariant: done is closed exactly when the node can no longer serve, because fail was
// called or it was shut down.
type lifecycle struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	// loops are the goroutines that Shutdown waits for.
	loops sync.WaitGroup

	mu   sync.Mutex
	err  error
	done chan struct{}
	over bool
}

func newLifecycle() *lifecycle {
	l := &lifecycle{done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// fail ends the node because of err. Only the first error counts.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over, l.err = true, err
	close(l.done)
	l.cancel(err)
}

func (l *lifecycle) close() { l.fail(nil) }

func (l *lifecycle) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lifecycle) run(loop func(ctx context.Context)) {
	l.loops.Go(func() { loop(l.ctx) })
}
