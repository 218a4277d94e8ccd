package service

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/server/apierror"
)

// admission bounds the calls in flight, and the ids and new names that a caller gets.
type admission struct {
	*authorizer
	etags    Etags
	caughtUp func() bool
	limiter  limiter
	most     int
	inFlight atomic.Int64
	// draining is set once, by Drain: admit lets no more calls in.
	draining atomic.Bool
}

// MaxInFlight is the limit of calls in flight.
func (a *admission) MaxInFlight() int { return a.most }

// admit lets a call in, or refuses it at once: a queue would only make the callers behind it wait
// for answers they no longer want. A call that was let in ends with leave.
//
// Invariant: a call is counted before draining is looked at, so Drain, which
// does it the other way round, misses none.
func (a *admission) admit(caller *limited) *apierror.Error {
	if err := caller.enter(); err != nil {
		return err
	}
	if a.inFlight.Add(1) > int64(a.most) {
		a.leave(caller)
		return apierror.Exhausted(apierror.ReasonOverloaded, "too many calls are in flight at this node", apierror.RetryBusy, nil)
	}
	if a.draining.Load() {
		a.leave(caller)
		return apierror.Stopping(nil)
	}
	return nil
}

func (a *admission) leave(caller *limited) {
	a.inFlight.Add(-1)
	caller.leave()
}

// allow refuses calls without the right, and calls beyond the caller's limits. It counts n ids, and
// a name if it is new.
func (a *admission) allow(ctx context.Context, need rights.Right, what target, n int64) error {
	if err := a.authorize(ctx, need, what.database, what.name); err != nil {
		return err
	}
	return a.limit(ctx, what, n)
}

// limit refuses a new name, or ids, beyond the caller's limits. A name whose ids are refused
// counts nevertheless, and once.
func (a *admission) limit(ctx context.Context, what target, n int64) error {
	c := a.limitsOf(ctx)
	if c == nil {
		return nil
	}
	now := time.Now()
	if c.names != nil && !a.knows(what) {
		if err := c.names.take(now, what); err != nil {
			return err
		}
	}
	return c.takeIDs(now, n)
}

// limitNames refuses new names beyond the caller's limits. It calls fresh only if there is a limit
// and the node can decide which names are new.
func (a *admission) limitNames(ctx context.Context, fresh func() []target) error {
	c := a.limitsOf(ctx)
	if c == nil || c.names == nil || !a.caughtUp() {
		return nil
	}
	if names := fresh(); len(names) > 0 {
		return c.names.take(time.Now(), names...)
	}
	return nil
}

// limitsOf returns the counters of the call's caller; nil, and quickly so, if
// there are no limits.
func (a *admission) limitsOf(ctx context.Context) *limited {
	roles := a.state.Roles()
	if roles.Table == nil || len(roles.Table.Limits) == 0 {
		return nil
	}
	return a.limiter.of(roles, a.Principal(ctx))
}

// drainPause is the interval between checks of the calls in flight. They end within
// milliseconds, unless the cluster is in trouble.
const drainPause = 2 * time.Millisecond

// Drain refuses new calls with STOPPING from now on, and waits until those in
// flight have ended, or ctx has. Reads of the status go on.
func (a *admission) Drain(ctx context.Context) error {
	a.draining.Store(true)
	tick := time.NewTicker(drainPause)
	defer tick.Stop()
	for {
		left := a.inFlight.Load()
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d calls are still in flight: %w", left, ctx.Err())
		}
	}
}
