package series

import (
	"math"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Suspend has the series give no numbers until Resume, because it may lack the newest ones.
//
// Every number that is open, or that waits for another key, becomes Unknown: it may be on a
// document since. A key keeps such a number if no other key can have got it; otherwise only
// Reconcile ends the number. Keys whose numbers others got are forgotten: they may have got
// other ones.
func (s *Series) Suspend() {
	for s.suspendSome(math.MaxInt) {
	}
}

// forgottenAtOnce is how many scopes and numbers one call forgets: it holds up all others.
const forgottenAtOnce = 1_000

// suspendSome begins to suspend the series, or goes on with it, and reports whether numbers are left to be
// forgotten. Until none is, those that are open belong to their keys as before: to resume the series
// then leaves it as it was, but for the numbers that are Unknown already.
func (s *Series) suspendSome(limit int) (more bool) {
	if !s.suspended { // A restore suspends with each piece.
		s.suspended, s.forgetting = true, 1
	}
	if s.forgetting > 0 {
		o := s.origin(func() bool { return s.final(forgottenAtOnce) })
		for ; int(s.forgetting) <= s.scopes.len(); s.forgetting++ {
			if limit = s.forget(s.forgetting-1, o, limit-1); limit <= 0 {
				return true
			}
		}
		s.regainAll()
	}
	s.forgetting, s.voidedUntil = 0, 0 // No number is open.
	return false
}

// forget makes up to limit numbers of a scope that have no last state what is left of them. It returns how
// many more it could.
func (s *Series) forget(scope int32, o *raftlogv1.SeriesOrigin, limit int) int {
	c := s.scopes.at(scope)
	if c.count[Open]+c.count[Released] == 0 {
		return limit
	}
	c = s.scopes.own(scope)
	unended := wanted{released: true, ended: true, lasting: true}
	for n := c.next(0, unended); n != 0 && limit > 0; n = c.next(n, unended) {
		r := c.at(n)
		known := left(o, *r)
		if owner := r.owner(); owner != "" && known.owner() == "" {
			s.index.drop(owner)
		}
		c.change(n, func(r *record) { *r = known })
		limit--
	}
	return limit
}

// Resume lets a suspended series go on; with more it stays suspended, because another call
// follows. Numbers of the books that the series does not know become Unknown, with the last
// date; a scope that it does not know begins with them. A series that is not suspended does
// not change, and takes no books: numbers beyond its own may belong to other documents already. The
// errors are *Error, also for more than MaxUnknown numbers of a scope, and *format.Error.
func (s *Series) Resume(now int64, books []*raftlogv1.SeriesInBooks, more bool) error {
	if !s.suspended && len(books) > 0 {
		return invalid("books", "are of a series that is not suspended: it gives numbers already")
	}
	if err := s.checkBooks(books); err != nil || !s.suspended {
		return err
	}
	s.advance(now)
	for _, b := range books {
		c, err := s.scopeOf(b.GetScope())
		if err != nil {
			return err // checkBooks found none.
		}
		s.extend(c, b)
	}
	if s.suspended = more; !more {
		s.forgetting = 0
	}
	return nil
}

// extend adds the numbers of the books that a scope does not know. No key got them at a known time.
func (s *Series) extend(c *scope, b *raftlogv1.SeriesInBooks) {
	c = s.scopes.begin(c)
	date := max(c.begins, s.lastDate(c))
	if b.LastDate != nil {
		date = format.Date(b.GetLastDate())
	}
	for c.lastNumber() < b.GetLast() {
		number := c.addAllotted(format.FirstDate)
		c.change(number, func(r *record) { r.state, r.date, r.shared = Unknown, date, true })
	}
	if b.GetClosed() {
		c.close()
	}
}

// checkBooks refuses numbers, dates and scopes that cannot be.
func (v *View) checkBooks(books []*raftlogv1.SeriesInBooks) error {
	invalid := func(detail string) error { return invalid("books", detail) }
	seen, begins, unknown := map[string]bool{}, 0, int64(0)
	for _, b := range books {
		if seen[ScopeName(b.GetScope())] {
			return invalid("have a scope twice")
		}
		seen[ScopeName(b.GetScope())] = true
		c, err := v.scopeOf(b.GetScope())
		if err != nil {
			return err
		}
		if detail := v.wrongBooks(c, b); detail != "" {
			return invalid(detail)
		}
		last, _ := c.furthest(b.GetLast())
		unknown += max(0, last-c.last)
		if !v.scopes.has(c) {
			begins++
		}
	}
	switch {
	case unknown > MaxUnknownAtOnce:
		return invalid("are together more than 1,000,000 beyond the numbers that are known")
	case v.scopes.len()+begins > MaxScopes:
		return invalid("have too many scopes")
	}
	return nil
}

// wrongBooks says what the books cannot have of a scope.
func (v *View) wrongBooks(c *scope, b *raftlogv1.SeriesInBooks) string {
	last, allotted := c.furthest(b.GetLast())
	beyond, ordered := last > c.last, v.definition.Order != OrderAny
	switch {
	case !allotted:
		return "have a number that was not allotted"
	case b.GetLast() < 1 || b.GetLast() > v.most():
		return "have a number that the format cannot show"
	case last-c.last > MaxUnknown:
		return "are more than 100,000 beyond a number that is known"
	case b.LastDate != nil && !v.dated(c, format.Date(b.GetLastDate())):
		return "have a last date that is not in the scope"
	case beyond && c.count[Released] > 0:
		return "are beyond numbers of which a restore still forgets some: make it go on first"
	case beyond && ordered && b.LastDate == nil:
		return "have numbers beyond those that are known, and no last date"
	case beyond && ordered && format.Date(b.GetLastDate()) < v.lastDate(c):
		return "have a last date before that of a number that is known"
	}
	return ""
}
