package cluster

import (
	"context"
	"errors"
	"sync"
)

// lifecycle is shared by all parts of a node: the context they run under, and the one
// error that ended it.
//
// Invariant: ctx has ended exactly when the node can no longer serve, because fail was
// called or it was shut down.
type lifecycle struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	// loops are the goroutines that Shutdown waits for.
	loops sync.WaitGroup
}

var errClosed = errors.New("cluster: the node was shut down")

func newLifecycle() *lifecycle {
	l := &lifecycle{}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// fail ends the node because of err. Only the first error counts.
func (l *lifecycle) fail(err error) { l.cancel(err) }

// close ends the node without an error, unless it has ended already.
func (l *lifecycle) close() { l.cancel(errClosed) }

func (l *lifecycle) failure() error {
	if err := context.Cause(l.ctx); !errors.Is(err, errClosed) {
		return err
	}
	return nil
}

func (l *lifecycle) run(loop func(ctx context.Context)) {
	l.loops.Go(func() { loop(l.ctx) })
}
