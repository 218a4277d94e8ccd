package commit

import (
	"context"
	"slices"
	"time"

	"github.com/idnode/idnode/raftlog"
)

// groupSender is the Gatherer's loop: it cuts a group, sends it to the leader until the group
// is settled, and then cuts the next.
type groupSender struct {
	g *Gatherer

	// The Gatherer's lock guards these.

	// waiters are the callers of the current group; empty if there is no group, or if
	// another goroutine gave the group up.
	waiters []*waiter
	attempt attempt

	// Only run uses these.

	// session is the session of new groups, zero if none is open, and origin the Raft id that
	// opened it.
	session    Session
	origin     []byte
	operations [][]byte
	callers    []context.Context
	retry      retry
	spare      []*waiter
}

type group struct {
	Group
	data    []byte
	size    int
	started time.Time
	// waited is a lower bound of how long the oldest operation has waited.
	waited time.Duration
	// attempts counts the attempts; leader is the target of the last.
	attempts int
	leader   string
	// span is the group's trace span, or nil; err is the newest attempt's error.
	span Span
	err  error
}

func (s *groupSender) run() {
	for {
		gr, ok := s.next()
		if !ok {
			return
		}
		s.send(&gr)
		endSpan(gr.span, gr.err)
	}
}

// next waits for operations and a way to the leader, and cuts a group. It
// returns false when the Gatherer ends.
func (s *groupSender) next() (group, bool) {
	g := s.g
	g.mu.Lock()
	for {
		switch {
		case g.closing && g.waiting.length == 0:
			g.mu.Unlock()
			return group{}, false
		case g.waiting.length == 0:
			s.retry = retry{}
			g.work.Wait()
		case g.reach.lost, !g.gathered():
			g.work.Wait()
		case s.session == Session{}:
			s.open()
		default:
			gr := s.cut()
			g.mu.Unlock()
			g.cfg.Events.Cut(len(s.operations), gr.waited)
			s.encode(&gr)
			s.startSpan(&gr)
			return gr, true
		}
	}
}

// cut takes the oldest operations. The bytes are collected under the lock, because another
// goroutine may answer a waiter, which is then reused.
func (s *groupSender) cut() group {
	g := s.g
	g.linger.want = 0
	waiters, size := g.waiting.pop(s.spare[:0], g.cfg.MaxOperations, g.cfg.MaxGroupBytes, g.cfg.MaxResultBytes)
	s.waiters, s.spare = waiters, waiters
	s.operations = s.operations[:0]
	for _, w := range waiters {
		s.operations = append(s.operations, w.operation)
	}
	if g.cfg.Events.StartSpan != nil {
		s.callers = s.callers[:0]
		for _, w := range waiters {
			s.callers = append(s.callers, w.caller)
		}
	}
	now := time.Now()
	waited := now.Sub(g.waiting.since)
	g.waiting.since = now
	return group{Group: s.session.Cut(), size: size, started: now, waited: waited}
}

func (s *groupSender) startSpan(gr *group) {
	if start := s.g.cfg.Events.StartSpan; start != nil {
		gr.span = start(s.callers, len(s.callers))
		clear(s.callers)
	}
}

// encode encodes the group into new bytes each time, because a Sender may keep them after
// the answer.
func (s *groupSender) encode(gr *group) {
	message := gr.Message(s.origin, s.operations)
	gr.data = raftlog.AppendGroup(make([]byte, 0, raftlog.SizeGroup(message)), message)
	clear(s.operations)
}

// send sends the group until it is settled. Invariant: each return has left no waiter
// behind, and no attempt follows it.
func (s *groupSender) send(gr *group) {
	for {
		ctx, leader, ok := s.begin(gr)
		if !ok {
			return
		}
		result, err := s.g.cfg.Sender.Send(withSpan(ctx, gr.span), leader, gr.data)
		gr.err = err
		if !s.follow(gr, s.judge(gr, result, err), result.Results) {
			return
		}
	}
}

func (s *groupSender) judge(gr *group, result raftlog.GroupResult, err error) Verdict {
	if err == nil {
		return gr.Answered(result, len(s.operations))
	}
	return gr.Failed(err, time.Since(gr.started) >= s.g.cfg.GiveUp)
}

// begin begins an attempt. It returns false, with the group settled, if no caller waits
// for the group. Without a leader it waits if the group may be in a log; otherwise the
// operations go back to the queue.
func (s *groupSender) begin(gr *group) (context.Context, string, bool) {
	g := s.g
	g.mu.Lock()
	defer g.mu.Unlock()
	next := gr.Begin(g.reach.lost, s.wanted())
	for next == Wait {
		changed := g.reach.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-g.halt.Done():
		}
		g.mu.Lock()
		next = gr.Begin(g.reach.lost, s.wanted())
	}
	if next == PutBack {
		s.putBack()
		return nil, "", false
	}
	gr.attempts++
	gr.leader = g.reach.leader
	return s.attempt.renew(g.reach.led, g.cfg.SendTimeout), gr.leader, true
}

// wanted reports whether a caller still waits for the group. The caller holds the lock.
func (s *groupSender) wanted() bool {
	for _, w := range s.waiters {
		if w.state != abandoned {
			return true
		}
	}
	return false
}

// drop clears the waiters. The caller holds the lock.
func (s *groupSender) drop() {
	clear(s.waiters)
	s.waiters = s.waiters[:0]
}

// abandon ends the attempt and returns the callers of the group in flight. The caller holds
// the lock, and answers them after it has released it.
func (s *groupSender) abandon() []*waiter {
	all := slices.Clone(s.waiters)
	s.drop()
	s.attempt.cancel()
	return all
}
