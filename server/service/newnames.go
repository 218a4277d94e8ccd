package service

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// target is what a call may bring into being. Database and name are folded.
type target struct {
	kind           targetKind
	database, name string
}

type targetKind byte

const (
	// targetNothing is of calls that make no name.
	targetNothing targetKind = iota
	targetIdentity
	targetTag
	targetClaim
	// targetDatabase is one of this node's server-side ids.
	targetDatabase
	// targetNumber is a key of a series, or a scope of it, after the series' name.
	targetNumber
)

// knows reports whether a call creates nothing new, by this node's state. A name unknown to it
// counts as new; but until it has caught up after its start, it cannot decide, and a caller must
// not pay for names that existed before.
func (a *admission) knows(what target) bool {
	if what.kind != targetDatabase && !a.caughtUp() {
		return true
	}
	switch what.kind {
	case targetIdentity:
		_, ok := a.state.Identity(what.database, what.name)
		return ok
	case targetTag:
		// HiLo also knows tags that are not there, where there is a floor for all.
		first := a.state.HiLos(what.database, what.name, "", 1)
		return len(first) == 1 && first[0].Tag == what.name
	case targetClaim:
		return slices.Contains(a.state.Claims(what.database, what.name, "", 1), what.name)
	case targetDatabase:
		return a.etags.Has(what.database)
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

// take counts new names, all or none.
func (n *newNames) take(now time.Time, all ...target) *Error {
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
		return exhausted(ReasonRateLimited,
			fmt.Sprintf("the caller's limit is %d new names an hour, and %d of this call are new, such as %.80q of database %.80q",
				n.perHour, len(fresh), all[0].shown(), all[0].database), wait, nil)
	}
	if len(n.counted)+len(fresh) > maxCounted {
		clear(n.counted)
	}
	for _, name := range fresh {
		n.counted[name] = struct{}{}
	}
	return nil
}

// shown is the name for people.
func (t target) shown() string {
	_, key, _ := strings.Cut(t.name, "\x00")
	return cmp.Or(key, t.name)
}
