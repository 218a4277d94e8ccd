package commit

import (
	"context"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// Waits between attempts that failed while a leader is known: the first is
// short because an election often has just ended, the longest is about what an
// election takes.
const (
	firstBackoff = 10 * time.Millisecond
	lastBackoff  = 100 * time.Millisecond
)

// retry paces attempts that follow one another without an answer.
type retry struct {
	// since is when the trouble began; zero if there is none.
	since   time.Time
	backoff time.Duration
}

// next returns how long to wait before the next attempt.
func (r *retry) next() time.Duration {
	r.backoff = min(max(2*r.backoff, firstBackoff), lastBackoff)
	return r.backoff
}

// pause waits for d, or until ctx ends or the way to the leader changes.
func (g *Gatherer) pause(ctx context.Context, d time.Duration) {
	g.mu.Lock()
	changed := g.reach.changed
	g.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
	}
}

// ledByOther says whether a node other than this one leads now.
func (g *Gatherer) ledByOther(leader string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.reach.lost && g.reach.leader != leader
}

// pause waits after the leader refused what is in the queue again. Operations
// in the queue do not wait longer than LeaderWait for that: then they are
// answered, and the count starts anew with those that come next.
func (s *groupSender) pause(started time.Time, cause error) {
	if s.retry.since.IsZero() {
		s.retry.since = started
	}
	if time.Since(s.retry.since) < s.g.cfg.LeaderWait {
		s.g.pause(s.g.halt, s.retry.next())
		return
	}
	s.retry = retry{}
	s.failWaiting(outcome.NewNotApplied(refusalReason(cause), cause))
}

// refusalReason is what the queue's callers are told after the leader refused
// for too long: what it said if that is about itself, else NoQuorum.
func refusalReason(cause error) outcome.Reason {
	switch r := outcome.ReasonOf(cause); r {
	case outcome.Starting, outcome.StorageFull, outcome.Overloaded, outcome.TooLarge, outcome.SessionLost:
		return r
	default:
		return outcome.NoQuorum
	}
}

// attempt is the context of a group sender's attempts. One serves many attempts, as
// long as each has at least the time an attempt may take: a new one each time
// would be what a lone caller pays most for.
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

// cancel ends the attempt under way.
func (a *attempt) cancel() {
	if a.end != nil {
		a.end()
	}
}
