package commit

import (
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/pause"
)

// expirySteps is the number of checks during CallLimit: the limit's resolution.
const expirySteps = 8

// afterPause is the time to read answers after this process was paused: they may have
// arrived during the pause.
const afterPause = 25 * time.Millisecond

// placeholder replaces a waiter whose caller was answered by another goroutine, so that the
// group's results still match its operations by position.
func placeholder() *waiter { return &waiter{state: abandoned, done: make(chan struct{}, 1)} }

// expire answers the callers of operations that have waited for longer than CallLimit,
// until the Gatherer ends. One timer serves all: a timer for each operation would be the
// largest cost of a call.
//
// The limit is measured in time, not in ticks: a busy machine drops ticks, and each would
// prolong a call. A pause of the process counts like any other time.
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
			pause.For(g.halt, afterPause)
		}
		looked = now
		g.endOverdue()
	}
}

// clock returns the time since the Gatherer was made. Changes of the wall clock do not
// affect it.
func (g *Gatherer) clock() time.Duration { return time.Since(g.made) }

func (g *Gatherer) endOverdue() {
	g.mu.Lock()
	enqueuedBefore := g.clock() - g.cfg.CallLimit
	waiting := g.overdueWaiting(enqueuedBefore)
	inFlight := g.sender.overdue(enqueuedBefore)
	if g.closing {
		g.work.Signal()
	}
	g.mu.Unlock()
	g.fail(waiting, outcome.NewNotApplied(outcome.Deadline, nil))
	g.fail(inFlight, outcome.NewUnknown(outcome.Deadline, nil))
}

// overdueWaiting removes the overdue operations from the queue. The oldest are in front,
// even after some were put back.
func (g *Gatherer) overdueWaiting(enqueuedBefore time.Duration) []*waiter {
	var overdue []*waiter
	for w := g.waiting.head; w != nil && w.enqueuedAt <= enqueuedBefore; w = g.waiting.head {
		g.waiting.remove(w)
		w.state = taken
		overdue = append(overdue, w)
	}
	return overdue
}

func (s *groupSender) overdue(enqueuedBefore time.Duration) []*waiter {
	var overdue []*waiter
	for i, w := range s.waiters {
		if w.state != abandoned && w.enqueuedAt <= enqueuedBefore {
			overdue = append(overdue, w)
			s.waiters[i] = placeholder()
		}
	}
	return overdue
}
