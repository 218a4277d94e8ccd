package service

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
)

// limiter counts, on this node, for the callers that have limits.
type limiter struct {
	mu sync.Mutex
	// setAt is the log index of the limits that the counters belong to: with new
	// limits all begin again.
	setAt   uint64
	callers map[string]*limited
}

// limited is a caller with limits.
type limited struct {
	limit    rights.Limit
	inFlight atomic.Int64
	// ids is nil without a limit on ids, names without a limit on new names.
	ids   *rate.Limiter
	names *newNames
	// debiting is held while ids may have another burst.
	debiting sync.Mutex
}

// maxLimited bounds the memory of callers that share a limit for every principal: beyond it all
// counters start again.
const maxLimited = 100_000

// of returns the counters of a caller, or nil if it has no limits.
func (l *limiter) of(roles fsm.Roles, principal string) *limited {
	limit, ok := roles.Table.Limit(principal)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.setAt != roles.SetAt || len(l.callers) >= maxLimited {
		l.setAt, l.callers = roles.SetAt, map[string]*limited{}
	}
	c := l.callers[principal]
	if c == nil {
		c = &limited{limit: limit, names: limitNewNames(limit.NewNamesPerHour)}
		if limit.IDsPerSecond > 0 {
			c.ids = rate.NewLimiter(rate.Limit(limit.IDsPerSecond), int(c.burst()))
		}
		l.callers[principal] = c
	}
	return c
}

// A caller may be ahead by a second, or by minBurst ids if that is more, so that
// counting a large call takes few steps. maxBurst keeps it within int on all
// machines.
const minBurst, maxBurst = 1_000, 1 << 30

func (c *limited) enter() *Error {
	if c == nil || c.limit.InFlight == 0 {
		return nil
	}
	if c.inFlight.Add(1) > c.limit.InFlight {
		c.inFlight.Add(-1)
		return exhausted(ReasonRateLimited,
			fmt.Sprintf("the caller has %d calls in flight, as many as its limit allows", c.limit.InFlight), retryBusy, nil)
	}
	return nil
}

func (c *limited) leave() {
	if c != nil && c.limit.InFlight != 0 {
		c.inFlight.Add(-1)
	}
}

// takeIDs counts ids. A call may ask for more than a second's worth: it is accepted if the
// caller has no debt, and later calls wait until the debt is paid. So the rate holds in the long
// run, for calls of any size.
func (c *limited) takeIDs(now time.Time, n int64) *Error {
	if c == nil || c.ids == nil || n <= 0 {
		return nil
	}
	burst := c.burst()
	if first := int(min(n, burst)); !c.ids.AllowN(now, first) {
		return exhausted(ReasonRateLimited, fmt.Sprintf("the caller's limit is %d ids a second", c.limit.IDsPerSecond),
			untilAllowed(c.ids, now, first), nil)
	}
	c.debit(now, n-min(n, burst))
	return nil
}

// untilAllowed returns after what time a limiter that refused n events may allow them.
func untilAllowed(l *rate.Limiter, now time.Time, n int) time.Duration {
	after := l.ReserveN(now, n)
	defer after.CancelAt(now)
	return max(after.DelayFrom(now), retryBusy)
}

// debit counts ids that were given already.
func (c *limited) debit(now time.Time, n int64) {
	if c == nil || c.ids == nil {
		return
	}
	c.debiting.Lock()
	defer c.debiting.Unlock()
	if burst := c.burst(); n > burst {
		// A range can skip 2^32 numbers: a Limiter takes no more than its burst in a step.
		c.ids.SetBurstAt(now, maxBurst)
		defer c.ids.SetBurstAt(now, int(burst))
	}
	for ; n > 0; n -= maxBurst {
		c.ids.ReserveN(now, int(min(n, maxBurst)))
	}
}

// burst is how many ids the caller may be ahead.
func (c *limited) burst() int64 { return min(max(c.limit.IDsPerSecond, minBurst), maxBurst) }

// giveBack takes ids off what was counted. No caller comes to be further ahead by it
// than takeIDs allows.
func (c *limited) giveBack(now time.Time, n int64) {
	if c == nil || c.ids == nil || n <= 0 {
		return
	}
	c.ids.ReserveN(now, -int(n)) // Fewer than none: a Limiter bounds its tokens when it is asked next.
}
