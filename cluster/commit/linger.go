package commit

import (
	"sync"
	"time"
)

const (
	// lingerShare is how many times as long as the last round the linger
	// may take. A caller comes back in a part of a round if the machine is idle, and
	// in two where callers and nodes fight for the same processors. It bounds what
	// traffic that does not come back pays: a few rounds.
	lingerShare = 3
	// lingerEnough is how many operations are not worth a wait any more: what a
	// round costs is spread thin by then, and those that wait could be on their way.
	lingerEnough = 64
)

// linger is the bounded wait for the callers that were just answered. They
// come back soon, but whoever cuts the next group is faster: without the wait it
// takes those that came meanwhile, and the callers fall apart into two parts that
// take turns for ever. It has no lock: that of its owner guards it.
type linger struct {
	// want says how many the next round waits for; 0 is any.
	want  int
	timer *time.Timer
}

func (c *linger) stop() {
	c.want = 0
	if c.timer != nil {
		c.timer.Stop()
	}
}

// expect starts a wait for so many, after a round that took so long; limit bounds
// it as well. Once over, it wakes all that wait on work. If a timer comes late,
// for a wait that is over, it cuts the next one short, which does no harm.
func (c *linger) expect(want int, took, limit time.Duration, mu *sync.Mutex, work *sync.Cond) {
	c.want = want
	bound := min(limit, lingerShare*took)
	if c.timer != nil {
		c.timer.Reset(bound)
		return
	}
	c.timer = time.AfterFunc(bound, func() {
		mu.Lock()
		defer mu.Unlock()
		c.want = 0
		work.Broadcast()
	})
}

// expect starts the linger after a group of so many operations: for
// them, and for those that wait already. The caller holds the lock.
func (g *Gatherer) expect(answered int, took time.Duration) {
	want := answered + g.waiting.length
	if g.cfg.Linger > 0 && want >= g.cfg.LingerMin && !g.closing {
		g.linger.expect(min(want, lingerEnough), took, g.cfg.Linger, &g.mu, &g.work)
	}
}

// gathered says whether what waits may go as a group.
func (g *Gatherer) gathered() bool {
	return g.waiting.length >= g.linger.want || g.waiting.bytes >= g.cfg.MaxGroupBytes || g.closing
}

// expect starts the linger after an entry of so many groups: for
// them, and for those that wait already. The caller holds the lock.
func (b *Batcher) expect(answered int, took time.Duration) {
	want := answered + len(b.waiting)
	if b.cfg.Linger > 0 && want > 1 && !b.closing {
		b.linger.expect(want, took, b.cfg.Linger, &b.mu, &b.work)
	}
}

// gathered says whether what waits may go as an entry.
func (b *Batcher) gathered() bool {
	return len(b.waiting) >= b.linger.want || b.operations >= 2*lingerEnough ||
		b.bytes >= b.cfg.MaxEntryBytes || b.closing
}
