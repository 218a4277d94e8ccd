package commit

import (
	"errors"
	"time"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// answered settles a group that the state machine has seen.
func (s *groupSender) answered(gr *group, result raftlog.GroupResult) {
	switch {
	case result.Status == raftlog.Applied && len(result.Results) == len(s.operations):
		s.applied(gr, result.Results)
	case result.Status == raftlog.StaleSession && !gr.tainted:
		// No attempt took effect, and none will in a session that has ended: the
		// operations may go into a new one.
		s.renewSession(gr)
		s.requeue(gr)
		s.pause(gr.started, outcome.NewNotApplied(outcome.SessionLost, nil))
	case result.Status == raftlog.StaleSession, result.Status == raftlog.StaleSequence:
		s.renewSession(gr)
		s.giveUp(gr, outcome.NewUnknown(outcome.SessionLost, nil))
	default:
		s.giveUp(gr, outcome.NewUnknown(outcome.Unspecified, errBadAnswer))
	}
}

// errBadAnswer is the cause when a leader does not answer with one result per operation.
var errBadAnswer = errors.New("the leader's answer does not fit the group")

// applied hands each caller its result.
func (s *groupSender) applied(gr *group, results [][]byte) {
	g, took := s.g, time.Since(gr.started)
	s.retry = retry{}
	g.mu.Lock()
	gr.session.settle(gr.sequence)
	waiters := s.waiters
	s.waiters = nil
	g.expect(len(results), took)
	if g.idle > 0 && len(g.senders) > 1 {
		g.work.Broadcast()
	}
	g.mu.Unlock()
	failpoint.Hit(failpoint.AnswerBefore)
	for i, w := range waiters {
		w.answer(results[i], nil)
	}
	if g.cfg.Events.Answered != nil {
		g.cfg.Events.Answered(len(results), gr.size, gr.attempts, took)
	}
}

// again decides after an attempt without a result: true sends the group again, false
// means it is settled.
func (s *groupSender) again(gr *group, err error) bool {
	refused := outcome.Of(err) == outcome.NotApplied
	gr.tainted = gr.tainted || !refused
	switch {
	case refused && final(err):
		s.giveUp(gr, outcomeOf(gr, outcome.ReasonOf(err), err))
		return false
	case !gr.tainted:
		s.requeue(gr)
		s.pause(gr.started, err)
		return false
	case time.Since(gr.started) >= s.g.cfg.GiveUp:
		s.giveUp(gr, outcome.NewUnknown(outcome.NoQuorum, err))
		s.failWaiting(outcome.NewNotApplied(outcome.NoQuorum, err))
		return false
	}
	s.hold(gr)
	return true
}

// hold waits before a group whose outcome is unknown is sent again: not the first time,
// and not when another node leads now, so that its callers get their answer soonest.
func (s *groupSender) hold(gr *group) {
	if gr.attempts > 1 && !s.g.ledByOther(gr.leader) {
		s.g.pause(s.g.halt, s.retry.next())
	}
}

// final reports whether another leader would refuse the group for the same reason, or a
// retry would add to an overload.
func final(err error) bool {
	switch outcome.ReasonOf(err) {
	case outcome.Overloaded, outcome.StorageFull, outcome.TooLarge, outcome.Invalid:
		return true
	default:
		return false
	}
}

// outcomeOf is Unknown for a tainted group, and NotApplied otherwise.
func outcomeOf(gr *group, reason outcome.Reason, cause error) error {
	if gr.tainted {
		return outcome.NewUnknown(reason, cause)
	}
	return outcome.NewNotApplied(reason, cause)
}

// giveUp settles the group and answers its callers with err.
func (s *groupSender) giveUp(gr *group, err error) {
	s.g.mu.Lock()
	gr.session.settle(gr.sequence)
	waiters := s.waiters
	s.waiters = nil
	s.g.work.Broadcast()
	s.g.mu.Unlock()
	s.g.fail(waiters, err)
}

// requeue is putBack for a caller without the lock.
func (s *groupSender) requeue(gr *group) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.putBack(gr)
}

// putBack settles a group that is certainly in no log, or that no caller waits for, and
// returns the operations with waiting callers to the head of the queue. The sequence
// number is not used again. The caller holds the lock.
func (s *groupSender) putBack(gr *group) {
	gr.session.settle(gr.sequence)
	for i := len(s.waiters) - 1; i >= 0; i-- {
		if w := s.waiters[i]; w.place != left {
			s.g.waiting.pushFront(w)
		}
	}
	s.drop()
	s.g.work.Broadcast()
}

// failWaiting answers all waiters in the queue with err.
func (s *groupSender) failWaiting(err error) {
	s.g.mu.Lock()
	waiting := s.g.waiting.drain()
	s.g.mu.Unlock()
	s.g.fail(waiting, err)
}
