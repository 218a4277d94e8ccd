package commit

import (
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// expirySteps is how many ages an operation lives through: its limit is kept to
// one part in so many.
const expirySteps = 8

// standIn takes the place of a waiter whose caller was answered over the
// carrier's head: the group's results still arrive in its order.
func standIn() *waiter { return &waiter{place: left, done: make(chan struct{}, 1)} }

// expire answers the callers of operations that wait for longer than CallLimit,
// until the Gatherer ends. One clock for all of them costs a call nothing, where
// a timer of its own would be the dearest part of it.
func (g *Gatherer) expire() {
	if g.cfg.CallLimit <= 0 {
		return
	}
	tick := time.NewTicker(g.cfg.CallLimit / expirySteps)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			g.older()
		case <-g.halt.Done():
			return
		}
	}
}

// older makes everything that waits older by one step.
func (g *Gatherer) older() {
	g.mu.Lock()
	g.age++
	waiting := g.overdueWaiting()
	var carried []*waiter
	for _, c := range g.carriers {
		carried = append(carried, c.overdue()...)
	}
	g.mu.Unlock()
	g.fail(waiting, outcome.NewNotApplied(outcome.Deadline, nil))
	g.fail(carried, outcome.NewUnknown(outcome.Deadline, nil))
}

// isOverdue says whether w has lived through all its ages. The first was not a
// whole one, so there is one more of them.
func (g *Gatherer) isOverdue(w *waiter) bool { return g.age-w.born > expirySteps }

// overdueWaiting takes the overdue out of the queue. The oldest are in front, also
// after some were put back.
func (g *Gatherer) overdueWaiting() []*waiter {
	var overdue []*waiter
	for w := g.waiting.head; w != nil && g.isOverdue(w); w = g.waiting.head {
		g.waiting.remove(w)
		w.place = taken
		overdue = append(overdue, w)
	}
	return overdue
}

// overdue takes the overdue out of the group in hand.
func (c *carrier) overdue() []*waiter {
	var overdue []*waiter
	for i, w := range c.waiters {
		if w.place != left && c.g.isOverdue(w) {
			overdue = append(overdue, w)
			c.waiters[i] = standIn()
		}
	}
	return overdue
}
