package commit

import (
	"context"
	"sync"
	"time"
)

// loop is the goroutine of a Gatherer or a Batcher, and its end.
type loop struct {
	mu sync.Mutex
	// work wakes the loop when it waits for work.
	work   sync.Cond
	linger linger
	// closing means that new work is refused; stopped that all work was answered.
	closing bool
	stopped bool

	// halt ends with the owner and cancels all waits.
	halt    context.Context
	haltNow context.CancelFunc
	// finished is closed when run has ended.
	finished chan struct{}
}

// start starts run, which ends once closing is set and the queue is empty.
func (l *loop) start(run func()) {
	l.work.L = &l.mu
	l.halt, l.haltNow = context.WithCancel(context.Background())
	l.finished = make(chan struct{})
	go func() {
		defer close(l.finished)
		run()
	}()
}

// close refuses new work, and waits for the loop until ctx ends. Then stop answers the
// rest. It may be called more than once; each call waits.
func (l *loop) close(ctx context.Context, stop func()) {
	l.mu.Lock()
	l.closing = true
	l.work.Signal()
	l.mu.Unlock()
	select {
	case <-l.finished:
	case <-ctx.Done():
	}
	stop()
	<-l.finished
}

const (
	// lingerShare bounds the linger as a multiple of the last round. A caller comes back
	// within one round on an idle machine, and within two where callers and nodes share
	// processors. So callers that do not come back cost at most this many rounds.
	lingerShare = 3
	// lingerFew bounds the linger of a group below LingerMin: the last round divided by it.
	// Two or three callers that alternate cost each other little.
	lingerFew = 4
	// lingerEnough is the number of operations from which a longer linger is not worth it:
	// the cost of a round is then shared by enough operations.
	lingerEnough = 64
)

// linger is the bounded wait for the callers that were just answered. They propose again
// soon, but the next group is cut sooner: without the wait it holds only the operations
// that arrived in between, and the callers stay split into two halves that alternate. The
// lock of the loop guards it.
type linger struct {
	// want is the number of operations or groups to wait for; 0 means any.
	want  int
	timer *time.Timer
}

func (c *linger) stop() {
	c.want = 0
	if c.timer != nil {
		c.timer.Stop()
	}
}

// lingerFor starts a wait for want items, after a round that took this long; limit bounds
// the wait too. Its end wakes the loop. A late timer cuts the next wait short, which is
// harmless. The caller holds the lock.
func (l *loop) lingerFor(want int, took, limit time.Duration) {
	l.linger.want = want
	bound := min(limit, lingerShare*took)
	if l.linger.timer != nil {
		l.linger.timer.Reset(bound)
		return
	}
	l.linger.timer = time.AfterFunc(bound, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.linger.want = 0
		l.work.Signal()
	})
}

// expect starts the linger after a group: for the same number of operations plus the queued
// ones. The caller holds the lock.
func (g *Gatherer) expect(answered int, took time.Duration) {
	want := answered + g.waiting.length
	if g.cfg.Linger == 0 || want < 2 || g.closing {
		return
	}
	limit := g.cfg.Linger
	if want < g.cfg.LingerMin {
		limit = min(limit, took/lingerFew)
	}
	g.lingerFor(min(want, lingerEnough), took, limit)
}

// gathered reports whether the queue may be cut into a group.
func (g *Gatherer) gathered() bool {
	return g.waiting.length >= g.linger.want || g.waiting.bytes >= g.cfg.MaxGroupBytes || g.closing
}

// expect starts the linger after an entry: for the same number of groups plus the queued
// ones. The caller holds the lock.
func (b *Batcher) expect(answered int, took time.Duration) {
	want := answered + len(b.waiting)
	if b.cfg.Linger > 0 && want > 1 && !b.closing {
		b.lingerFor(want, took, b.cfg.Linger)
	}
}

func (b *Batcher) gathered() bool {
	return len(b.waiting) >= b.linger.want || b.operations >= 2*lingerEnough ||
		b.bytes >= b.cfg.MaxEntryBytes || b.closing
}
