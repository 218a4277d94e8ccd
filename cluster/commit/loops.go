package commit

import (
	"context"
	"sync"
	"sync/atomic"
)

// loops are the goroutines of a Gatherer or a Batcher, and their end.
type loops struct {
	mu sync.Mutex
	// work wakes the loops that wait for work.
	work   sync.Cond
	linger linger
	// closing means that new work is refused; stopped that all work was answered.
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

// start starts the loops. Each ends once closing is set and the queue is empty.
func (l *loops) start(run ...func()) {
	var running atomic.Int32
	running.Store(int32(len(run)))
	for _, f := range run {
		go func() {
			f()
			if running.Add(-1) == 0 {
				close(l.finished)
			}
		}()
	}
}

// close refuses new work, and waits for the loops until ctx ends. Then stop answers the
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
