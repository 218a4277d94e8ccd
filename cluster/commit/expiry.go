package commit

import (
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// expirySteps is how often in the course of CallLimit the operations are looked at:
// the limit is kept to one part in so many.
const expirySteps = 8

// afterPause is how long answers have to get in when this process did not run for
// a while: they may have been there before it went on.
const afterPause = 25 * time.Millisecond

// standIn takes the place of a waiter whose caller was answered
// by another goroutine: the group's results still arrive in its order.
func standIn() *waiter { return &waiter{place: left, done: make(chan struct{}, 1)} }

// expire answers the callers of operations that wait for longer than CallLimit,
// until the Gatherer ends. One timer for all of them costs a call nothing, where
// one of its own would be the dearest part of it.
//
// The limit is one of time. Steps must not be counted: on a busy machine some are
// dropped, and each would make a call that much longer. So a pause of the process
// counts like any other time.
func (g *Gatherer) expire() {
	if g.cfg.CallLimit <= 0 {
		return
	}
	step := g.cfg.CallLimit / expirySteps
	tick := time.NewTicker(step)
	defer tick.Stop()
	looked := g.clock()
	for {
		select {
		case <-tick.C:
		case <-g.halt.Done():
			return
		}
		now := g.clock()
		if now-looked > 2*step {
			g.rest(afterPause)
		}
		looked = now
		g.endOverdue()
	}
}

// rest waits for d, or until the Gatherer ends.
func (g *Gatherer) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.halt.Done():
	}
}

// clock returns the time since the Gatherer was made. No change of the wall clock
// moves it.
func (g *Gatherer) clock() time.Duration { return time.Since(g.made) }

// endOverdue answers those that have waited for too long.
func (g *Gatherer) endOverdue() {
	g.mu.Lock()
	bornBefore := g.clock() - g.cfg.CallLimit
	waiting := g.overdueWaiting(bornBefore)
	var inFlight []*waiter
	for _, s := range g.senders {
		inFlight = append(inFlight, s.overdue(bornBefore)...)
	}
	g.mu.Unlock()
	g.fail(waiting, outcome.NewNotApplied(outcome.Deadline, nil))
	g.fail(inFlight, outcome.NewUnknown(outcome.Deadline, nil))
}

// overdueWaiting takes the overdue out of the queue. The oldest are in front, also
// after some were put back.
func (g *Gatherer) overdueWaiting(bornBefore time.Duration) []*waiter {
	var overdue []*waiter
	for w := g.waiting.head; w != nil && w.born <= bornBefore; w = g.waiting.head {
		g.waiting.remove(w)
		w.place = taken
		overdue = append(overdue, w)
	}
	return overdue
}

// overdue takes the overdue out of the group in hand.
func (s *groupSender) overdue(bornBefore time.Duration) []*waiter {
	var overdue []*waiter
	for i, w := range s.waiters {
		if w.place != left && w.born <= bornBefore {
			overdue = append(overdue, w)
			s.waiters[i] = standIn()
		}
	}
	return overdue
}
