package commit

import (
	"context"
	"sync"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// open opens a session. The caller holds the lock, which is released meanwhile; opening
// excludes the other senders. Operations stay in the queue, where their callers can remove
// them.
func (s *groupSender) open() {
	g := s.g
	g.opening = true
	g.mu.Unlock()
	started := time.Now()
	number, origin, err := g.openOne()
	if err != nil {
		s.pause(started, err)
	}
	g.mu.Lock()
	g.opening = false
	if err == nil {
		opened := NewSession(number)
		g.session, g.origin = &opened, origin
	}
	g.work.Broadcast()
}

func (g *Gatherer) openOne() (uint64, []byte, error) {
	ctx, cancel := context.WithTimeout(g.halt, g.cfg.SendTimeout)
	defer cancel()
	number, origin, err := g.cfg.Opener.Open(ctx)
	if err != nil {
		g.cfg.Logger.Warn("could not open a session", "error", err)
		return 0, nil, err
	}
	g.cfg.Logger.Info("opened a session", "session", number)
	if g.cfg.Events.SessionOpened != nil {
		g.cfg.Events.SessionOpened(number)
	}
	return number, origin, nil
}

// renewSession drops the session of a refused group, unless a newer session is open.
func (s *groupSender) renewSession(gr *group) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if s.g.session == gr.session {
		s.g.session = nil
	}
}

// ProposeIdempotent commits one operation outside of any session and returns the state
// machine's result. The operation may be applied more than once and must be idempotent,
// as the announcement that opens a session is. It is sent in a group of its own. Its errors
// are *outcome.Error; ctx, or GiveUp, bounds the wait.
func (g *Gatherer) ProposeIdempotent(ctx context.Context, operation []byte) ([]byte, error) {
	if cost(operation) > g.cfg.MaxGroupBytes {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.GiveUp)
	defer cancel()
	stop := context.AfterFunc(g.halt, cancel)
	defer stop()
	data := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	return g.sendUntilAnswered(ctx, data)
}

func (g *Gatherer) sendUntilAnswered(ctx context.Context, data []byte) ([]byte, error) {
	var gr Group
	var r retry
	for {
		leader, err := g.WaitLeader(ctx)
		if err != nil {
			return nil, gr.outcome(outcome.ReasonOf(err), err)
		}
		result, err := g.sendOnce(ctx, leader, data)
		if err == nil {
			return singleResult(result)
		}
		if v := gr.Failed(err, false); v.Next == GiveUp {
			return nil, v.Err
		}
		g.pause(ctx, &r)
	}
}

// sendOnce makes one attempt, which ends early if another node leads.
func (g *Gatherer) sendOnce(ctx context.Context, leader string, data []byte) (raftlog.GroupResult, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.SendTimeout)
	var watching sync.WaitGroup
	watching.Go(func() {
		g.untilLedByOther(ctx, leader)
		cancel()
	})
	defer watching.Wait()
	defer cancel()
	return g.cfg.Sender.Send(ctx, leader, data)
}

// untilLedByOther waits until another node than leader leads, or ctx ends.
func (g *Gatherer) untilLedByOther(ctx context.Context, leader string) {
	for {
		other, changed := g.ledByOther(leader)
		if other {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func singleResult(result raftlog.GroupResult) ([]byte, error) {
	if result.Status != raftlog.Applied || len(result.Results) != 1 {
		return nil, outcome.NewUnknown(outcome.Unspecified, errBadAnswer)
	}
	return result.Results[0], nil
}

// Waits between failed attempts while a leader is known: the first is short because an
// election has often just ended, the last about as long as an election.
const (
	firstBackoff = 2 * time.Millisecond
	lastBackoff  = 100 * time.Millisecond
)

// retry paces successive attempts without an answer.
type retry struct {
	// since is when the first attempt failed; zero if none failed.
	since   time.Time
	backoff time.Duration
}

func (r *retry) next() time.Duration {
	r.backoff = min(max(2*r.backoff, firstBackoff), lastBackoff)
	return r.backoff
}

// pause waits before the next attempt, until ctx ends or the leader or the quorum changes:
// then the backoff starts again.
func (g *Gatherer) pause(ctx context.Context, r *retry) {
	g.mu.Lock()
	changed := g.reach.changed
	g.mu.Unlock()
	t := time.NewTimer(r.next())
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
		r.backoff = 0
	case <-ctx.Done():
	}
}

// ledByOther reports whether a node other than this one leads now. changed is closed when
// that may be different.
func (g *Gatherer) ledByOther(leader string) (other bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.reach.lost && g.reach.leader != leader, g.reach.changed
}

// pause waits after the leader refused a group, whose operations are back in the queue.
// After LeaderWait of refusals the queued operations fail, and the count starts again.
func (s *groupSender) pause(started time.Time, cause error) {
	if s.retry.since.IsZero() {
		s.retry.since = started
	}
	if time.Since(s.retry.since) < s.g.cfg.LeaderWait {
		s.g.pause(s.g.halt, &s.retry)
		return
	}
	s.retry = retry{}
	s.failWaiting(outcome.NewNotApplied(refusalReason(cause), cause))
}

// refusalReason returns the reason for the queued operations after LeaderWait of refusals:
// the leader's own reason if it concerns the leader's state, else NoQuorum.
func refusalReason(cause error) outcome.Reason {
	switch r := outcome.ReasonOf(cause); r {
	case outcome.Starting, outcome.StorageFull, outcome.Overloaded, outcome.TooLarge, outcome.SessionLost:
		return r
	default:
		return outcome.NoQuorum
	}
}

// attempt is the context of a group sender's attempts. One context serves many attempts,
// as long as each gets at least SendTimeout: a new context for each attempt would be the
// largest cost of a lone caller.
type attempt struct {
	ctx     context.Context
	end     context.CancelFunc
	renewal time.Time
}

// renew returns a context that lasts between one and two times d.
func (a *attempt) renew(parent context.Context, d time.Duration) context.Context {
	now := time.Now()
	if a.ctx != nil && a.ctx.Err() == nil && now.Before(a.renewal) {
		return a.ctx
	}
	a.cancel()
	a.ctx, a.end = context.WithTimeout(parent, 2*d)
	a.renewal = now.Add(d)
	return a.ctx
}

func (a *attempt) cancel() {
	if a.end != nil {
		a.end()
	}
}
