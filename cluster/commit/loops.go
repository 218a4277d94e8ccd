package commit

import (
	"context"
	"sync"
)

// loops are the goroutines that work for a Gatherer's or a Batcher's callers, and their
// end.
type loops struct {
	mu sync.Mutex
	// work wakes the loops that wait for something to do.
	work   sync.Cond
	linger linger
	// closing means that nothing new is taken; stopped that nothing is left.
	closing bool
	stopped bool

	// halt ends with the owner and cancels all waits.
	halt    context.Context
	haltNow context.CancelFunc
	// finished is closed when all loops have ended.
	finished chan struct{}
}

func (l *loops) init() {
	l.work.L = &l.mu
	l.halt, l.haltNow = context.WithCancel(context.Background())
	l.finished = make(chan struct{})
}

// start starts the loops. Each ends once closing is set and nothing waits.
func (l *loops) start(run ...func()) {
	var running sync.WaitGroup
	for _, f := range run {
		running.Go(f)
	}
	go func() {
		running.Wait()
		close(l.finished)
	}()
}

// close takes nothing new, and waits for the loops until ctx ends. Then stop answers the
// rest. It may be called more than once; each call waits.
func (l *loops) close(ctx context.Context, stop func()) {
	l.mu.Lock()
	l.closing = true
	l.work.Broadcast()
	l.mu.Unlock()
	select {
	case <-l.finished:
	case <-ctx.Done():
	}
	stop()
	<-l.finished
}
