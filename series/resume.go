package series

import "github.com/idnode/idnode/series/format"

// Suspended reports whether the series gives no numbers. What it has can be confirmed,
// voided and released.
func (s *Series) Suspended() bool { return s.suspended }

// Suspend has the series give no numbers until Resume, because it may lack the newest ones.
//
// Every number that is open, or that waits for another key, becomes Unknown: it may be on a
// document since. A key keeps such a number if no other key can have got it; otherwise only
// Reconcile ends the number. Keys whose numbers others got are forgotten: they may have got
// other ones.
func (s *Series) Suspend() {
	if !s.suspended { // A restore suspends with each piece.
		s.forgetAll()
	}
	s.suspended, s.voidedUntil = true, 0 // No number is open.
}

func (s *Series) forgetAll() {
	keep := s.keepsKeys(s.final)
	for i := range s.scopes.len {
		if c := s.scopes.at(i); c.count[Open]+c.count[Released] > 0 {
			s.forget(s.scopes.own(i), keep)
		}
	}
	s.lost.Scan(func(key string, l lostKey) bool {
		s.hash.Remove(Lost{Key: key, Number: l.number, Released: l.released}.hash())
		return true
	})
	s.lost, s.lostBytes = newLost(), 0
}

// keepsKeys reports whether no other key can get an open number, now or after a change of
// the definition. A series without final numbers may be redefined in every part.
func (s *Series) keepsKeys(final func() bool) bool {
	return s.definition.OnRelease == ReleaseVoids && s.definition.OnExpiry != ExpiryReuses && final()
}

// forget makes the numbers of a scope unknown that have no last state.
func (s *Series) forget(c *scope, keep bool) {
	left := c.count[Open] + c.count[Released]
	for n := c.last; left > 0; n-- {
		r := c.at(n)
		if r.state != Open && r.state != Released {
			continue
		}
		left--
		if state, reason := s.stateOf(r, s.now); state == Voided {
			c.end(n, Voided, reason)
			continue
		}
		shared := !keep || r.key() == ""
		if shared && r.key() != "" {
			s.index.drop(r.key())
		}
		c.change(n, func(r *record) { r.state, r.expires, r.shared = Unknown, 0, shared })
	}
}

// Last is the last number of a scope.
type Last struct {
	Scope []string
	Last  int64
}

// InBooks is what the books have of a scope.
type InBooks struct {
	Scope []string
	// Last is the last number.
	Last int64
	// LastDate is the greatest date, if DateGiven.
	LastDate  format.Date
	DateGiven bool
	// Closed means that the scope was closed.
	Closed bool
}

// Resume lets a suspended series go on; with more it stays suspended, because another call
// follows. Numbers of the books that the series does not know become Unknown, with the last
// date; a scope that it does not know begins with them. A series that is not suspended does
// not change, and knows the numbers, or they may belong to other documents already. The
// errors are *InvalidError, also for more than MaxUnknown numbers of a scope, and
// *format.Error.
func (s *Series) Resume(now int64, books []InBooks, more bool) error {
	if err := s.checkBooks(books); err != nil {
		return err
	}
	if !s.suspended {
		return nil
	}
	s.advance(now)
	for i := range books {
		c, err := s.scopeOf(books[i].Scope)
		if err != nil {
			return err // checkBooks found none.
		}
		s.extend(c, &books[i])
	}
	s.suspended = more
	return nil
}

// extend adds the numbers of the books that a scope does not know. They have no time at
// which a key got them.
func (s *Series) extend(c *scope, b *InBooks) {
	s.begin(c)
	c = s.scopes.own(c.index)
	date := max(c.begins, s.lastDate(c, s.now))
	if b.DateGiven {
		date = b.LastDate
	}
	for c.last < b.Last {
		number := c.add()
		c.change(number, func(r *record) { r.state, r.date, r.shared = Unknown, date, true })
	}
	if b.Closed {
		c.close()
	}
}

// checkBooks refuses numbers, dates and scopes that cannot be.
func (s *Series) checkBooks(books []InBooks) error {
	invalid := func(detail string) error { return &InvalidError{Field: "books", Detail: detail} }
	seen, begins, unknown := map[string]bool{}, 0, int64(0)
	for i := range books {
		b := &books[i]
		if seen[scopeName(b.Scope)] {
			return invalid("have a scope twice")
		}
		seen[scopeName(b.Scope)] = true
		c, err := s.scopeOf(b.Scope)
		if err != nil {
			return err
		}
		if detail := s.wrongBooks(c, b); detail != "" {
			return invalid(detail)
		}
		unknown += max(0, b.Last-c.last)
		if c.index == s.scopes.len {
			begins++
		}
	}
	switch {
	case unknown > MaxUnknownAtOnce:
		return invalid("are together more than 1,000,000 beyond the numbers that are known")
	case s.scopes.len+begins > MaxScopes:
		return invalid("have too many scopes")
	}
	return nil
}

// wrongBooks says what the books cannot have of a scope.
func (s *Series) wrongBooks(c *scope, b *InBooks) string {
	beyond, ordered := b.Last > c.last, s.definition.Order != OrderAny
	switch {
	case b.Last < 1 || b.Last > s.most():
		return "have a number that is none of the format"
	case !s.suspended && beyond:
		return "are beyond the numbers of a series that is not suspended"
	case !s.suspended && b.Closed && !c.closed:
		return "close a scope of a series that is not suspended"
	case b.Last-c.last > MaxUnknown:
		return "are more than 100,000 beyond a number that is known"
	case b.DateGiven && !s.dated(c, b.LastDate):
		return "have a last date that is not in the scope"
	case beyond && ordered && !b.DateGiven:
		return "have numbers beyond those that are known, and no last date"
	case beyond && ordered && b.LastDate < s.lastDate(c, s.now):
		return "have a last date before that of a number that is known"
	}
	return ""
}
