package series

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// What a policy makes of a number is not stored when the number's time ends: a million may end at
// once. A number is judged when it is looked at. Only memory depends on when settle stores that.

// voidedBy returns until when the time of a number that is voided for it has ended.
func (s *rules) voidedBy() int64 {
	if s.definition.OnExpiry == ExpiryVoids {
		return s.now
	}
	return s.voidedUntil
}

// goneBy returns until when the time of a number that counts as open no more has ended: it
// is voided, or waits for another key.
func (s *rules) goneBy() int64 {
	if s.definition.OnExpiry == ExpiryReuses {
		return s.now
	}
	return s.voidedBy()
}

// stateOf returns the state of a number, and the reason of a voided one.
func (s *rules) stateOf(r *record) (NumberState, string) {
	switch {
	case r.state == Open && r.ended(s.voidedBy()):
		return Voided, ReasonExpired
	case r.state == Released && s.definition.OnRelease == ReleaseVoids:
		return Voided, ReasonReleased
	}
	return r.state, r.reason()
}

// lapsed reports whether a number is open, its time has ended, and another key may get it.
func (s *rules) lapsed(r *record) bool {
	return r.state == Open && s.definition.OnExpiry == ExpiryReuses && r.ended(s.now) && !r.ended(s.voidedUntil)
}

// count returns how many numbers of a scope are in each state, and how many open ones are overdue.
func (s *rules) count(c *scope) (count [Unknown + 1]int64, overdue int64) {
	count = c.count
	voided := c.ended(s.voidedBy())
	count[Open] -= voided
	count[Voided] += voided
	if s.definition.OnRelease == ReleaseVoids {
		count[Voided] += count[Released]
		count[Released] = 0
	}
	return count, c.ended(s.now) - voided
}

// settle stores that some numbers of a scope are voided.
func (s *rules) settle(c *scope, limit int) {
	for ; limit > 0 && c.ends(s.voidedBy()); limit-- {
		d, _ := c.deadlines.Min()
		c.end(d.number, Voided, ReasonExpired)
	}
	for ; limit > 0 && c.count[Released] > 0 && s.definition.OnRelease == ReleaseVoids; limit-- {
		c.end(c.next(0, wanted{released: true}), Voided, ReasonReleased)
	}
}

// settledByKey is how many numbers a call settles for each of its keys: more than it can
// bring, so that fewer and fewer are left.
const settledByKey = 2

// free is what another key may get.
func (s *rules) free() wanted {
	return wanted{released: s.definition.OnRelease != ReleaseVoids, ended: s.definition.OnExpiry == ExpiryReuses, at: s.now}
}

// goesBack reports whether a released number of a scope may go to another key. With ReleaseReusesNewest all
// numbers that wait for one are the last ones of their allotment, or of the scope.
func (s *rules) goesBack(c *scope, number int64) bool {
	switch s.definition.OnRelease {
	case ReleaseReuses:
		return true
	case ReleaseReusesNewest:
		return c.newest(number) && c.allotted.in(number) == c.allotted.in(c.last)
	}
	return false
}

// maxLooked is how many free numbers one call looks at: it holds up all others.
const maxLooked = 1_000

// run returns the first of the lowest consecutive numbers that the fresh keys can be given: free
// ones, but for those kept, and numbers that were never given. If the first maxLooked free
// ones have no such run, these are the latter. A number of an allotment that has ended is not given again.
func (t *taking) run(c *scope) int64 {
	free, count := t.free(), int64(len(t.fresh))
	if c.count[Released] == 0 && !(free.ended && c.ends(t.now)) {
		return c.last + 1
	}
	var first, next int64
	for n, looked := c.next(t.above(c), free), 0; n != 0; n = c.next(n, free) {
		if looked++; looked > maxLooked {
			return c.last + 1
		}
		if t.kept[refOf(c.index, n)] || c.at(n).state == Open && c.at(n).ended(t.voidedUntil) || c.past(n, max(t.today, t.date)) {
			continue
		}
		if n != next {
			first = n
		}
		if next = n + 1; next-first == count {
			return first
		}
	}
	if next > first && next == c.last+1 {
		return first
	}
	return c.last + 1
}

// above returns the place above which numbers may be given again: with ReleaseReusesNewest only those of the newest
// allotment.
func (t *taking) above(c *scope) int64 {
	if a := c.allotted.in(c.last); a != nil && t.definition.OnRelease == ReleaseReusesNewest {
		return a.starts - 1
	}
	return 0
}

func (s *rules) oldest(c *scope) string {
	if n := c.next(0, wanted{lasting: true, at: s.goneBy()}); n != 0 {
		return c.at(n).key()
	}
	return ""
}

// origin is what the numbers say of themselves where they are merged. final reports whether a
// number is confirmed or voided: a series without one may be redefined in every part, so that
// other keys can get open numbers later.
func (s *rules) origin(final func() bool) *raftlogv1.SeriesOrigin {
	released := s.definition.OnRelease == ReleaseVoids
	return &raftlogv1.SeriesOrigin{
		SinceUnixNano: s.since, Version: s.version, VoidedByUnixNano: s.voidedBy(), ReleasedVoided: released,
		KeysStay: released && s.definition.OnExpiry != ExpiryReuses && final(),
	}
}
