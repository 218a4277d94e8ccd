package commit

import (
	"context"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

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

func (g *Gatherer) ledByOther(leader string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.reach.lost && g.reach.leader != leader
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

// attempt is the context of the group sender's attempts at a leader. One context serves many
// attempts, as long as each gets at least SendTimeout: a new context for each attempt would be
// the largest cost of a lone caller.
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
