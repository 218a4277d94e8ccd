package series

// Suspended reports whether the series gives no numbers. What it has can be confirmed,
// voided and released.
func (s *Series) Suspended() bool { return s.suspended }

// Suspend has it give no numbers until Resume: it may lack the newest ones.
func (s *Series) Suspend() { s.suspended = true }

// Last is the last number of a scope that is in the books.
type Last struct {
	Scope []string
	Last  int64
}

// Resume lets a suspended series go on. Numbers of the books that it does not know are
// voided, for ReasonUnknown; a scope that it does not know begins with them. One that is
// not suspended does not change, and knows the numbers, or they may belong to other
// documents already. The errors are *InvalidError, also for more than MaxUnknown numbers
// of a scope, and *format.Error.
func (s *Series) Resume(now int64, lasts []Last) error {
	if err := s.checkLasts(lasts); err != nil {
		return err
	}
	if !s.suspended {
		return nil
	}
	now = s.advance(now)
	for _, l := range lasts {
		c, err := s.scopeOf(l.Scope)
		if err != nil {
			return err // checkLasts found none.
		}
		s.begin(c)
		c = s.scopes.own(c.index)
		for c.last < l.Last {
			number := c.add()
			c.change(number, func(r *record) {
				*r = record{taken: now, date: max(c.begins, c.lastDate), state: Voided}
				r.write("", "", ReasonUnknown)
			})
		}
	}
	s.suspended = false
	return nil
}

// checkLasts refuses numbers and scopes that cannot be.
func (s *Series) checkLasts(lasts []Last) error {
	invalid := func(detail string) error { return &InvalidError{Field: "lasts", Detail: detail} }
	seen, begins, unknown := map[string]bool{}, 0, int64(0)
	for _, l := range lasts {
		if seen[scopeName(l.Scope)] {
			return invalid("have a scope twice")
		}
		seen[scopeName(l.Scope)] = true
		known := int64(0)
		if c, err := s.find(l.Scope); err == nil {
			known = c.last
		} else if _, _, err := s.format.ParseScope(l.Scope); err != nil {
			return err
		} else {
			begins++
		}
		switch {
		case l.Last < 1 || l.Last > s.most():
			return invalid("have a number that is none of the format")
		case !s.suspended && l.Last > known:
			return invalid("are beyond the numbers of a series that is not suspended")
		case l.Last-known > MaxUnknown:
			return invalid("are more than 100,000 beyond a number that is known")
		}
		unknown += max(0, l.Last-known)
	}
	switch {
	case unknown > MaxUnknownAtOnce:
		return invalid("are together more than 1,000,000 beyond the numbers that are known")
	case s.scopes.len+begins > MaxScopes:
		return invalid("have too many scopes")
	}
	return nil
}
