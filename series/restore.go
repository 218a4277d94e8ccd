package series

import "slices"

// Restore returns a series without numbers, of which PutNumbers and PutLost put in what a
// frozen one had. The errors are those of New, and *InvalidError.
func Restore(d Definition, version int64, suspended bool, now int64) (*Series, error) {
	s, err := New(d)
	if err != nil {
		return nil, err
	}
	if version < 1 {
		return nil, &InvalidError{Field: "version", Detail: "is below 1"}
	}
	s.version, s.suspended, s.now = version, suspended, now
	return s, nil
}

// PutNumbers adds numbers of a frozen series, behind those that are there. Some that are
// there may come again: they must be the same. The errors are *InvalidError, *format.Error
// and *DiffersError; the series may then have some of the numbers, and is not to be used.
func (s *Series) PutNumbers(p Piece) error {
	c, err := s.scopeOf(p.Scope)
	if err != nil {
		return err
	}
	for i := range p.Numbers {
		number, n := p.First+int64(i), &p.Numbers[i]
		switch {
		case number < 1 || number > c.last+1 || number > min(s.format.Most(), maxNumber):
			return &InvalidError{Field: "numbers", Detail: "do not follow those before them"}
		case number <= c.last && c.at(number).stored() != *n:
			return &DiffersError{Scope: p.Scope, Number: number}
		case number <= c.last:
			continue
		}
		if err := s.put(c, n); err != nil {
			return err
		}
	}
	c.reach(p.LastDate)
	if p.Closed {
		c.close()
	}
	return nil
}

// scopeOf returns the scope with some values; a new one begins.
func (s *Series) scopeOf(values []string) (*scope, error) {
	if c, err := s.find(values); err == nil {
		return c, nil
	}
	if len(s.scopes) >= MaxScopes {
		return nil, &InvalidError{Field: "scope", Detail: "is one too many"}
	}
	_, given, err := s.format.ParseScope(values)
	if err != nil {
		return nil, err
	}
	c := newScope(len(s.scopes), slices.Clone(values), slices.Clone(given), &s.hash)
	s.begin(c)
	return c, nil
}

// put adds the next number of a scope.
func (s *Series) put(c *scope, n *Stored) error {
	if err := s.checkStored(n); err != nil {
		return err
	}
	number := c.add()
	c.change(number, func(r *record) {
		*r = record{taken: n.Taken, expires: n.Expires, date: n.Date}
		r.write(n.Key, n.Label, n.Reason)
		switch {
		case n.Lapsed:
			r.state, r.lapsed = Open, true
			c.lapsed++
			c.free.Set(number)
		case n.State == Open:
			c.bind(number, r)
		default:
			r.state = n.State
			c.count[n.State]++
			if n.State == Released {
				c.free.Set(number)
			}
		}
	})
	if n.Key != "" {
		s.index.set(c.at(number).key(), refOf(c.index, number))
	}
	return nil
}

// checkStored finds what no series would have stored.
func (s *Series) checkStored(n *Stored) error {
	keyless := n.State == Released || n.Reason == ReasonReleased || n.Reason == ReasonUnknown
	switch {
	case n.State < Open || n.State > Released:
		return &InvalidError{Field: "numbers", Detail: "have one without a state"}
	case n.Lapsed && n.State != Open:
		return &InvalidError{Field: "numbers", Detail: "have one that lapsed and is not open"}
	case (n.Reason != "") != (n.State == Voided) || len(n.Reason) > MaxReasonBytes || !plain(n.Reason):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong reason"}
	case len(n.Label) > MaxLabelBytes || !plain(n.Label):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong label"}
	case !n.Date.Valid():
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong date"}
	case n.Key == "" && !keyless:
		return &InvalidError{Field: "numbers", Detail: "have one without a key"}
	case n.Key == "":
		return nil
	}
	return s.checkNew(n.Key)
}

// checkNew refuses a key that is none, or that the series knows.
func (s *Series) checkNew(key string) error {
	if err := checkKeys([]string{key}); err != nil {
		return err
	}
	if _, lost := s.lost.Get(key); lost || s.index.find(key) != 0 {
		return &InvalidError{Field: "keys", Detail: "are known already"}
	}
	return nil
}

// PutLost adds a key of a frozen series whose number was given to another. The errors are
// those of PutNumbers.
func (s *Series) PutLost(l Lost) error {
	if known, ok := s.lost.Get(l.Key); ok {
		if known != (lostKey{l.Number, l.Released}) {
			return &DiffersError{Key: l.Key}
		}
		return nil
	}
	if l.Number < 1 || l.Number > maxNumber {
		return &InvalidError{Field: "number", Detail: "is none"}
	}
	if err := s.checkNew(l.Key); err != nil {
		return err
	}
	s.lose(l)
	return nil
}
