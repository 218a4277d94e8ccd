package series

import (
	"slices"

	"github.com/idnode/idnode/series/format"
)

// maxVersion is above that of every series, and can be counted up from.
const maxVersion = 1 << 53

// Restore returns a series without numbers, of which PutNumbers and PutLost put in what a
// frozen one had. The errors are those of New, and *InvalidError.
func Restore(d Definition, version, since int64, suspended bool, now, voidedUntil int64) (*Series, error) {
	s, err := New(d)
	if err != nil {
		return nil, err
	}
	if version < 1 || version > maxVersion {
		return nil, &InvalidError{Field: "version", Detail: "is out of range"}
	}
	if voidedUntil > now {
		return nil, &InvalidError{Field: "voided_until", Detail: "is in the future"}
	}
	s.version, s.since, s.suspended, s.now, s.voidedUntil = version, since, suspended, now, voidedUntil
	return s, nil
}

// PutNumbers adds numbers of a frozen series, behind those that are there, or none. The errors
// are *InvalidError and *format.Error.
func (s *Series) PutNumbers(p Piece) error {
	c, err := s.scopeOf(p.Scope)
	if err != nil {
		return err
	}
	if err := s.checkPiece(c, p); err != nil {
		return err
	}
	s.begin(c)
	c = s.scopes.own(c.index)
	if c.empty() {
		c.moveTo(p.offset())
	}
	for i := range p.Numbers {
		s.store(c, c.add(), &p.Numbers[i])
	}
	if p.Closed {
		c.close()
	}
	return nil
}

// offset returns the last number from before the scope.
func (p *Piece) offset() int64 { return max(p.Begin, 1) - 1 }

// check finds what no piece of a series has, in a scope of it.
func (p *Piece) check(s *Series, c *scope) error {
	invalid := func(field, detail string) error { return &InvalidError{Field: field, Detail: detail} }
	count := int64(len(p.Numbers))
	switch {
	case p.Begin < 0 || p.Begin > s.most():
		return invalid("begin", "is none of the format")
	case count > slabSize:
		return invalid("numbers", "are more than 256")
	case count == 0 && p.First != p.offset()+1:
		return invalid("numbers", "are empty")
	case p.First <= p.offset():
		return invalid("numbers", "do not follow those before them")
	case p.First > s.most() || p.First+count-1 > s.most():
		return invalid("numbers", "are more than the format has")
	}
	keys, checked := make(map[string]bool, count), format.LastDate+1
	for i := range p.Numbers {
		n := &p.Numbers[i]
		// Neighbours mostly have one date, and a date costs more than all the rest.
		if n.Date != checked && !s.dated(c, n.Date) {
			return invalid("numbers", "have one with a wrong date")
		}
		checked = n.Date
		if err := n.check(keys); err != nil {
			return err
		}
	}
	return nil
}

// scopeOf returns the scope with some values; a new one is not begun yet.
func (s *Series) scopeOf(values []string) (*scope, error) {
	if c, err := s.find(values); err == nil {
		return c, nil
	}
	if s.scopes.len >= MaxScopes {
		return nil, &InvalidError{Field: "scope", Detail: "is one too many"}
	}
	date, given, err := s.format.ParseScope(values)
	if err != nil {
		return nil, err
	}
	values, err = s.format.Scope(date, given)
	return s.newScope(values), err
}

// checkPiece finds what does not come next.
func (s *Series) checkPiece(c *scope, p Piece) error {
	if err := p.check(s, c); err != nil {
		return err
	}
	invalid := func(field, detail string) error { return &InvalidError{Field: field, Detail: detail} }
	last := c.last
	if c.empty() {
		last = p.offset()
	}
	switch {
	case !c.empty() && c.offset != p.offset():
		return invalid("begin", "is another one than before")
	case p.First != last+1 || c.index < s.scopes.len && len(p.Numbers) == 0:
		return invalid("numbers", "do not follow those before them")
	}
	for i := range p.Numbers {
		switch n := &p.Numbers[i]; {
		case s.suspended && (n.State == Open || n.State == Released):
			return invalid("numbers", "have one that is open or released, and the series is suspended")
		case n.owner() != "" && s.knows(n.owner()):
			return invalid("keys", "are known already")
		}
	}
	return nil
}

func (s *Series) most() int64 { return min(s.format.Most(), maxNumber) }

func (s *Series) dated(c *scope, d format.Date) bool {
	values, err := s.format.Scope(d, c.given())
	return err == nil && slices.Equal(values, c.values)
}

// store has a number of a scope be as it is stored. No other key has it.
func (s *Series) store(c *scope, number int64, n *Stored) {
	c.change(number, func(r *record) { r.store(n) })
	if key := c.at(number).owner(); key != "" {
		s.index.set(key, refOf(c.index, number))
	}
}

func (r *record) store(n *Stored) {
	*r = record{taken: n.Taken, expires: n.Expires, date: n.Date, state: n.State, shared: n.Shared}
	r.write(n.Key, n.Label, n.Reason)
}

// owner returns the key that has the number; "" if none has it for certain.
func (n *Stored) owner() string {
	if n.Shared {
		return ""
	}
	return n.Key
}

// check finds what no series would have stored. It adds the key to keys, which has those of the
// numbers before.
func (n *Stored) check(keys map[string]bool) error {
	keyless := n.State == Released || n.State == Voided || n.Shared
	switch {
	case n.State < Open || n.State > Unknown:
		return &InvalidError{Field: "numbers", Detail: "have one without a state"}
	case n.Shared && n.State != Unknown:
		return &InvalidError{Field: "numbers", Detail: "have one that is another key's, and not unknown"}
	case n.State == Unknown && n.Expires != 0:
		return &InvalidError{Field: "numbers", Detail: "have one that is unknown, and has an end"}
	case (n.Reason != "") != (n.State == Voided) || len(n.Reason) > MaxReasonBytes || !visible(n.Reason):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong reason"}
	case len(n.Label) > MaxLabelBytes || !visible(n.Label):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong label"}
	case n.Key == "" && !keyless:
		return &InvalidError{Field: "numbers", Detail: "have one without a key"}
	case n.Key == "":
		return nil
	case !n.Shared && keys[n.Key]:
		return &InvalidError{Field: "keys", Detail: "are known already"}
	}
	keys[n.Key] = keys[n.Key] || !n.Shared
	return checkKeys([]string{n.Key})
}

// knows reports whether a key has a number, or had one that another got.
func (s *Series) knows(key string) bool {
	_, lost := s.lost.Get(key)
	return lost || s.index.find(key) != 0
}

// PutLost adds a key of a frozen series whose number was given to another, unless the
// series knows the key. The error is *InvalidError.
func (s *Series) PutLost(l Lost) error {
	if l.Number < 1 || l.Number > s.most() {
		return &InvalidError{Field: "number", Detail: "is out of range"}
	}
	if err := checkKeys([]string{l.Key}); err != nil {
		return err
	}
	if s.knows(l.Key) {
		return nil
	}
	s.lose(l)
	return nil
}
