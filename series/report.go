package series

import "github.com/idnode/idnode/series/format"

// Summary is what a scope has.
type Summary struct {
	Scope    []string
	Last     int64
	LastDate format.Date
	Closed   bool
	// Open counts the overdue ones too. Open, Confirmed, Voided and Released together are
	// Last.
	Open, Overdue, Confirmed, Voided, Released int64
}

// Report returns what the scopes have at a time, in the order in which they began.
func (s *Series) Report(now int64) []Summary {
	now = max(now, s.now)
	all := make([]Summary, len(s.scopes))
	for i, c := range s.scopes {
		x := Summary{
			Scope: c.values, Last: c.last, LastDate: c.lastDate, Closed: c.closed,
			Open: c.count[Open] + c.lapsed, Overdue: c.lapsed,
			Confirmed: c.count[Confirmed], Voided: c.count[Voided], Released: c.count[Released],
		}
		var ended int64
		c.expired(now, func(int64) bool { ended++; return true })
		if s.definition.OnExpiry == ExpiryVoids {
			x.Open -= ended
			x.Voided += ended
		} else {
			x.Overdue += ended
		}
		all[i] = x
	}
	return all
}

// Numbers returns up to limit numbers of a scope above one, ascending: those in a state,
// or all if the state is 0. The error is *UnknownScopeError.
func (s *Series) Numbers(now int64, values []string, state State, above int64, limit int) ([]Number, error) {
	c, err := s.find(values)
	if err != nil {
		return nil, err
	}
	var all []Number
	for n := min(max(above, 0), c.last) + 1; n <= c.last && len(all) < limit; n++ {
		if x := s.number(c, n, max(now, s.now)); state == 0 || x.State == state {
			all = append(all, x)
		}
	}
	return all, nil
}

// Verify finds the first number that is not in exactly one state, or that its key does not
// lead to. The error is *VerifyError.
func (s *Series) Verify() error {
	var keys int64
	for _, c := range s.scopes {
		n, err := s.verify(c)
		if err != nil {
			return err
		}
		keys += n
	}
	if keys != s.index.len {
		return &VerifyError{Detail: "does not exist, and a key has it"}
	}
	return s.verifyLost()
}

// verifyLost finds a key that has a number, and none.
func (s *Series) verifyLost() (err error) {
	s.lost.Scan(func(key string, _ lostKey) bool {
		if at := s.index.find(key); at != 0 {
			err = &VerifyError{Scope: s.scopes[at.scope()].values, Number: at.number(), Detail: "is that of a key that has lost its number"}
		}
		return err == nil
	})
	return err
}

// verify checks a scope, and counts its keys.
func (s *Series) verify(c *scope) (keys int64, err error) {
	var count [Released + 1]int64
	var free, deadlines, lapsed int64
	for n := int64(1); n <= c.last; n++ {
		r := c.at(n)
		if detail := s.wrong(c, n, r); detail != "" {
			return 0, &VerifyError{Scope: c.values, Number: n, Detail: detail}
		}
		switch {
		case r.lapsed:
			lapsed++
			free++
		case r.state == Released:
			free++
			fallthrough
		default:
			count[r.state]++
		}
		if r.state == Open && !r.lapsed && r.expires != 0 {
			deadlines++
		}
		if r.key() != "" {
			keys++
		}
	}
	if count != c.count || lapsed != c.lapsed || free != int64(c.free.Len()) || deadlines != int64(c.deadlines.Len()) {
		return 0, &VerifyError{Scope: c.values, Number: c.last, Detail: "is the last, and the sums of the states are wrong"}
	}
	return keys, nil
}

// wrong says what is wrong with a number.
func (s *Series) wrong(c *scope, n int64, r *record) string {
	_, free := c.free.Get(n)
	_, waits := c.deadlines.Get(deadline{r.expires, n})
	switch {
	case r.state < Open || r.state > Released:
		return "is in no state"
	case r.lapsed && r.state != Open:
		return "has lapsed and is not open"
	case free != (r.lapsed || r.state == Released):
		return "is free and in use, or neither"
	case waits != (r.state == Open && !r.lapsed && r.expires != 0):
		return "has a deadline and is not open, or the other way around"
	case (r.reason() != "") != (r.state == Voided):
		return "has a reason and is not voided, or the other way around"
	case r.key() == "" && r.state != Released && r.reason() != ReasonReleased && r.reason() != ReasonUnknown:
		return "has no key"
	case r.key() != "" && s.index.find(r.key()) != refOf(c.index, n):
		return "has a key that leads elsewhere"
	}
	return ""
}
