package admission

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/server/apierror"
)

// State is the part of the replicated state that admission reads; *fsm.State implements it.
type State interface {
	// Roles is called for most calls, so it must be fast.
	Roles() fsm.Roles
	Identity(database, name string) (identity.Counter, bool)
	HiLos(database, prefix, after string, limit int) []fsm.NamedHiLo
	Claims(database, prefix, after string, limit int) []string
}

// bounds bounds the calls in flight, and the ids and new names that a caller gets.
type bounds struct {
	*authorizer
	// hasEtags reports whether a database has a counter of this node's etags.
	hasEtags func(database string) bool
	caughtUp func() bool
	limiter  limiter
	most     int
	inFlight atomic.Int64
	// draining is set once, by Drain: admit lets no more calls in.
	draining atomic.Bool
}

// MaxInFlight is the limit of InFlight.
func (a *bounds) MaxInFlight() int { return a.most }

// InFlight returns how many calls are in flight.
func (a *bounds) InFlight() int64 { return a.inFlight.Load() }

// Admit lets a call in, or refuses it at once: a queue would only make the callers behind it wait
// for answers they no longer want. A call that was let in ends with Leave.
//
// Invariant: a call is counted before draining is looked at, so Drain, which
// does it the other way round, misses none.
func (a *bounds) Admit(caller *Limited) *apierror.Error {
	if err := caller.enter(); err != nil {
		return err
	}
	if a.inFlight.Add(1) > int64(a.most) {
		a.Leave(caller)
		return apierror.Exhausted(apierror.ReasonOverloaded, "too many calls are in flight at this node", apierror.RetryBusy, nil)
	}
	if a.Draining() {
		a.Leave(caller)
		return apierror.Stopping(nil)
	}
	return nil
}

// Leave ends a call that Admit let in.
func (a *bounds) Leave(caller *Limited) {
	a.inFlight.Add(-1)
	caller.leave()
}

// Allow refuses calls without the right, and calls beyond the caller's limits. It counts n ids, and
// a name if it is new.
func (a *bounds) Allow(ctx context.Context, need rights.Right, what Target, n int64) error {
	if err := a.Authorize(ctx, need, what.Database, what.Name); err != nil {
		return err
	}
	return a.Limit(ctx, what, n)
}

// Limit refuses a new name, or ids, beyond the caller's limits. A name whose ids are refused
// counts nevertheless, and once.
func (a *bounds) Limit(ctx context.Context, what Target, n int64) error {
	c := a.LimitsOf(ctx)
	if c == nil {
		return nil
	}
	now := time.Now()
	if c.names != nil && !a.knows(what) {
		if err := c.names.count(now, what); err != nil {
			return err
		}
	}
	return c.countIDs(now, n)
}

// LimitNames refuses new names beyond the caller's limits. It calls fresh only if there is a limit
// and the node can decide which names are new.
func (a *bounds) LimitNames(ctx context.Context, fresh func() []Target) error {
	c := a.LimitsOf(ctx)
	if c == nil || c.names == nil || !a.caughtUp() {
		return nil
	}
	if names := fresh(); len(names) > 0 {
		return c.names.count(time.Now(), names...)
	}
	return nil
}

// LimitsOf returns the counters of the call's caller; nil, and quickly so, if
// there are no limits.
func (a *bounds) LimitsOf(ctx context.Context) *Limited {
	roles := a.state.Roles()
	if roles.Table == nil || len(roles.Table.Limits) == 0 {
		return nil
	}
	return a.limiter.of(roles, a.Principal(ctx))
}

// Draining reports whether Drain has been called.
func (a *bounds) Draining() bool { return a.draining.Load() }

// drainPause is the interval between checks of the calls in flight. They end within
// milliseconds, unless the cluster is in trouble.
const drainPause = 2 * time.Millisecond

// Drain refuses new calls with STOPPING from now on, and waits until those in
// flight have ended, or ctx has. Reads of the status go on.
func (a *bounds) Drain(ctx context.Context) error {
	a.draining.Store(true)
	tick := time.NewTicker(drainPause)
	defer tick.Stop()
	for {
		left := a.InFlight()
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
