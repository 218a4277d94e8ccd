package commit

import (
	"time"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/outcome"
)

// follow carries a verdict out. It returns true if the group is to be sent again, and false
// if it is settled.
func (s *groupSender) follow(gr *group, v Verdict, results [][]byte) bool {
	if v.SessionEnded {
		s.session = Session{}
	}
	switch v.Next {
	case Deliver:
		s.deliver(gr, results)
	case PutBack:
		s.g.mu.Lock()
		s.putBack()
		s.g.mu.Unlock()
		s.pause(gr.started, v.Err)
	case GiveUp:
		s.giveUp(v.Err)
	default:
		s.hold(gr)
		return true
	}
	if v.Late {
		s.failWaiting(outcome.NewNotApplied(outcome.NoQuorum, gr.err))
	}
	return false
}

func (s *groupSender) deliver(gr *group, results [][]byte) {
	g, took := s.g, time.Since(gr.started)
	s.retry = retry{}
	g.mu.Lock()
	waiters := s.waiters
	s.waiters = nil
	g.expect(len(results), took)
	g.mu.Unlock()
	failpoint.Hit(failpoint.AnswerBefore)
	for i, w := range waiters {
		w.answer(results[i], nil)
	}
	g.cfg.Events.Answered(len(results), gr.size, gr.attempts, took)
}

// hold waits before a group whose outcome is unknown is sent again. It does not wait the
// first time, nor if another node leads now, so that the callers get their answer sooner.
func (s *groupSender) hold(gr *group) {
	if gr.attempts > 1 && !s.g.ledByOther(gr.leader) {
		s.g.pause(s.g.halt, &s.retry)
	}
}

func (s *groupSender) giveUp(err error) {
	s.g.mu.Lock()
	waiters := s.waiters
	s.waiters = nil
	s.g.mu.Unlock()
	s.g.fail(waiters, err)
}

// putBack returns the operations with waiting callers to the head of the queue, of a group
// that is certainly in no log, or that no caller waits for. The sequence number is not used
// again. The caller holds the lock.
func (s *groupSender) putBack() {
	for i := len(s.waiters) - 1; i >= 0; i-- {
		if w := s.waiters[i]; w.state != abandoned {
			s.g.waiting.pushFront(w)
		}
	}
	s.drop()
}

func (s *groupSender) failWaiting(err error) {
	s.g.mu.Lock()
	waiting := s.g.waiting.drain()
	s.g.mu.Unlock()
	s.g.fail(waiting, err)
}
