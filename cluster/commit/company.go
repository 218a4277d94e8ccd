package commit

import (
	"sync"
	"time"
)

// company is the bounded wait for the callers that were just answered. They
// come back within microseconds, but the carrier is faster: without the wait it
// cuts a group of the first few, and the rest wait a whole round trip. It has
// no lock: the Gatherer's guards it.
type company struct {
	// want says how many operations the next group waits for; 0 is any.
	want  int
	timer *time.Timer
}

func (c *company) stop() {
	c.want = 0
	if c.timer != nil {
		c.timer.Stop()
	}
}

// expect starts a wait of at most d for so many. Once over, it wakes all that
// wait on work. If a timer comes late, for a wait that is over, it cuts the next
// one short, which does no harm.
func (c *company) expect(want int, d time.Duration, mu *sync.Mutex, work *sync.Cond) {
	c.want = want
	if c.timer != nil {
		c.timer.Reset(d)
		return
	}
	c.timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		c.want = 0
		work.Broadcast()
	})
}

// expect starts the wait for company after a group of so many operations was
// answered.
func (g *Gatherer) expect(operations int) {
	if g.cfg.Company > 0 && operations >= g.cfg.CompanyMin && !g.closing {
		g.company.expect(operations, g.cfg.Company, &g.mu, &g.work)
	}
}

// gathered says whether what waits may go as a group.
func (g *Gatherer) gathered() bool {
	return g.waiting.length >= g.company.want || g.waiting.bytes >= g.cfg.MaxGroupBytes || g.closing
}
