package admission

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/apierror"
)

// limiter counts, on this node, for the callers that have limits.
type limiter struct {
	mu sync.Mutex
	// setAt is the log index of the limits that the counters belong to: with new
	// limits all begin again.
	setAt   uint64
	callers map[string]*Limited
}

// Limited is a caller that has limits, and what counts against them; nil has none.
type Limited struct {
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
func (l *limiter) of(roles fsm.Roles, principal string) *Limited {
	limit, ok := roles.Table.Limit(principal)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.setAt != roles.SetAt || len(l.callers) >= maxLimited {
		l.setAt, l.callers = roles.SetAt, map[string]*Limited{}
	}
	c := l.callers[principal]
	if c == nil {
		c = &Limited{limit: limit, names: limitNewNames(limit.NewNamesPerHour)}
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

func (c *Limited) enter() *apierror.Error {
	if c == nil || c.limit.InFlight == 0 {
		return nil
	}
	if c.inFlight.Add(1) > c.limit.InFlight {
		c.inFlight.Add(-1)
		return apierror.Exhausted(apierror.ReasonRateLimited,
			fmt.Sprintf("the caller has %d calls in flight, as many as its limit allows", c.limit.InFlight), apierror.RetryBusy, nil)
	}
	return nil
}

func (c *Limited) leave() {
	if c != nil && c.limit.InFlight != 0 {
		c.inFlight.Add(-1)
	}
}

// countIDs counts ids. A call may ask for more than a second's worth: it is accepted if the
// caller has no debt, and later calls wait until the debt is paid. So the rate holds in the long
// run, for calls of any size.
func (c *Limited) countIDs(now time.Time, n int64) error {
	if c == nil || c.ids == nil || n <= 0 {
		return nil
	}
	burst := c.burst()
	if first := int(min(n, burst)); !c.ids.AllowN(now, first) {
		return apierror.Exhausted(apierror.ReasonRateLimited, fmt.Sprintf("the caller's limit is %d ids a second", c.limit.IDsPerSecond),
			untilAllowed(c.ids, now, first), nil)
	}
	c.Debit(now, n-min(n, burst))
	return nil
}

// untilAllowed returns the time until a limiter that refused n events may allow them.
func untilAllowed(l *rate.Limiter, now time.Time, n int) time.Duration {
	after := l.ReserveN(now, n)
	defer after.CancelAt(now)
	return max(after.DelayFrom(now), apierror.RetryBusy)
}

// Debit counts ids that were given already.
func (c *Limited) Debit(now time.Time, n int64) {
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

func (c *Limited) burst() int64 { return min(max(c.limit.IDsPerSecond, minBurst), maxBurst) }

// GiveBack subtracts ids from the count. It never puts a caller further ahead than countIDs allows.
func (c *Limited) GiveBack(now time.Time, n int64) {
	if c == nil || c.ids == nil || n <= 0 {
		return
	}
	c.ids.ReserveN(now, -int(n)) // Fewer than none: a Limiter bounds its tokens when it is asked next.
}

// Target is the name that a call may create. Database and name are folded.
type Target struct {
	Kind           TargetKind
	Database, Name string
}

// TargetKind is the kind of a Target.
type TargetKind byte

const (
	// TargetNothing, the default, is for calls that create no name.
	TargetNothing TargetKind = iota
	TargetIdentity
	TargetTag
	TargetClaim
	// TargetDatabase is one of this node's server-side ids.
	TargetDatabase
	// TargetNumber is a key of a series, or a scope of it, after the series' name.
	TargetNumber
)

// knows reports whether a call creates nothing new, by this node's state. A name that is not in the
// state counts as new. Until the node has caught up after its start it cannot decide: callers must
// not be charged for names that existed before.
func (a *bounds) knows(what Target) bool {
	if what.Kind != TargetDatabase && !a.caughtUp() {
		return true
	}
	switch what.Kind {
	case TargetIdentity:
		_, ok := a.state.Identity(what.Database, what.Name)
		return ok
	case TargetTag:
		// HiLos also returns tags without a counter, where there is a floor for all.
		first := a.state.HiLos(what.Database, what.Name, "", 1)
		return len(first) == 1 && first[0].Tag == what.Name
	case TargetClaim:
		return slices.Contains(a.state.Claims(what.Database, what.Name, "", 1), what.Name)
	case TargetDatabase:
		return a.hasEtags(what.Database)
	default:
		return true
	}
}

// newNames counts the new names of a caller.
type newNames struct {
	perHour int64
	rate    *rate.Limiter
	mu      sync.Mutex
	// counted are the newest names, as hashes: a name that many calls ask for at the same time,
	// or again because it was refused, counts once.
	counted map[uint64]struct{}
}

// maxCounted bounds the memory of counted. Beyond it all are dropped, and names that are
// still on their way count twice.
const maxCounted = 1024

// newNamesSeed keeps callers from choosing names whose hashes are equal.
var newNamesSeed = maphash.MakeSeed()

// limitNewNames returns nil without a limit.
func limitNewNames(perHour int64) *newNames {
	if perHour == 0 {
		return nil
	}
	return &newNames{
		perHour: perHour,
		// An hour's worth at once: a new application creates all its names at the start.
		rate:    rate.NewLimiter(rate.Limit(float64(perHour)/time.Hour.Seconds()), int(min(perHour, maxBurst))),
		counted: map[uint64]struct{}{},
	}
}

// count counts new names, all or none.
func (n *newNames) count(now time.Time, all ...Target) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var fresh []uint64
	for _, what := range all {
		name := maphash.Comparable(newNamesSeed, what)
		if _, ok := n.counted[name]; !ok {
			fresh = append(fresh, name)
		}
	}
	if !n.rate.AllowN(now, len(fresh)) {
		// A call may have more than the limit: its caller must make it smaller.
		wait := untilAllowed(n.rate, now, min(len(fresh), n.rate.Burst()))
		return apierror.Exhausted(apierror.ReasonRateLimited,
			fmt.Sprintf("the caller's limit is %d new names an hour, and %d of this call are new, such as %.80q of database %.80q",
				n.perHour, len(fresh), all[0].shown(), all[0].Database), wait, nil)
	}
	if len(n.counted)+len(fresh) > maxCounted {
		clear(n.counted)
	}
	for _, name := range fresh {
		n.counted[name] = struct{}{}
	}
	return nil
}

func (t Target) shown() string {
	_, key, _ := strings.Cut(t.Name, "\x00")
	return cmp.Or(key, t.Name)
}
