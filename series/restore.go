package series

import (
	"slices"

	"github.com/idnode/idnode/series/format"
)

// maxVersion is above that of every series, and can be counted up from.
const maxVersion = 1 << 53

// Restore returns a series without numbers, of which PutNumbers and PutLost put in what a
// frozen one had. The errors are those of New, and *InvalidError.
func Restore(d Definition, version int64, suspended bool, now, voidedUntil int64) (*Series, error) {
	s, err := New(d)
	if err != nil {
		return nil, err
	}
	if version < 1 || version > maxVersion {
		return nil, &InvalidError{Field: "version", Detail: "is none"}
	}
	if voidedUntil > now {
		return nil, &InvalidError{Field: "voided_until", Detail: "is in the future"}
	}
	s.version, s.suspended, s.now, s.voidedUntil = version, suspended, now, voidedUntil
	return s, nil
}

// PutNumbers adds numbers of a frozen series, behind those that are there, or none. Those
// that are there stay as they are, for they may have changed since; but the series must
// know their keys, or it is another one. The errors are *InvalidError, *format.Error and
// *DiffersError.
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
		c.moveTo(p.offset(c))
	}
	for i := c.last + 1 - p.First; i < int64(len(p.Numbers)); i++ {
		s.put(c, &p.Numbers[i])
	}
	if p.Closed {
		c.close()
	}
	return nil
}

// offset returns the last number from before the scope. A piece that says nothing of a scope
// has that of the scope.
func (p *Piece) offset(c *scope) int64 {
	if p.Begin == 0 && len(p.Numbers) == 0 {
		return c.offset
	}
	return max(p.Begin, 1) - 1
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

// checkPiece finds what does not fit into a scope.
func (s *Series) checkPiece(c *scope, p Piece) error {
	invalid := func(field, detail string) error { return &InvalidError{Field: field, Detail: detail} }
	count, offset := int64(len(p.Numbers)), p.offset(c)
	switch {
	case p.Begin < 0 || p.Begin > s.most():
		return invalid("begin", "is none of the format")
	case offset != c.offset && (!c.empty() || c.offset > 0):
		return &DiffersError{Scope: p.Scope, Begins: c.offset + 1, BackupBegins: offset + 1}
	case count > slabSize:
		return invalid("numbers", "are more than 256")
	case count == 0 && p.First == max(p.Begin, 1):
		return nil
	case count == 0:
		return invalid("numbers", "are none")
	case p.First <= offset || p.First > c.last-c.offset+offset+1:
		return invalid("numbers", "do not follow those before them")
	case p.First+count-1 > s.most():
		return invalid("numbers", "are more than the format has")
	}
	fresh, checked := make(map[string]bool, count), format.LastDate+1
	for i := range p.Numbers {
		number, n := p.First+int64(i), &p.Numbers[i]
		if number <= c.last {
			if n.Key != "" && c.at(number).state != Unknown && !s.knows(n.Key) {
				return &DiffersError{Scope: p.Scope, Number: number, Key: n.Key}
			}
			continue
		}
		// Neighbours mostly have one date, and a date costs more than all the rest.
		if n.Date != checked && !s.dated(c, n.Date) {
			return invalid("numbers", "have one with a wrong date")
		}
		checked = n.Date
		if err := s.checkStored(n, fresh); err != nil {
			return err
		}
	}
	return nil
}

// most returns the greatest number of a scope.
func (s *Series) most() int64 { return min(s.format.Most(), maxNumber) }

// dated reports whether a date is in a scope.
func (s *Series) dated(c *scope, d format.Date) bool {
	values, err := s.format.Scope(d, c.given())
	return err == nil && slices.Equal(values, c.values)
}

// put adds the next number of a scope.
func (s *Series) put(c *scope, n *Stored) {
	number := c.add()
	c.change(number, func(r *record) {
		*r = record{taken: n.Taken, expires: n.Expires, date: n.Date, state: n.State, shared: n.Shared}
		r.write(n.Key, n.Label, n.Reason)
	})
	if key := c.at(number).owner(); key != "" {
		s.index.set(key, refOf(c.index, number))
	}
}

// checkStored finds what the series would not have stored. It adds the key to fresh, which
// has those of the numbers before.
func (s *Series) checkStored(n *Stored, fresh map[string]bool) error {
	keyless := n.State == Released || n.State == Voided || n.Shared
	switch {
	case n.State < Open || n.State > Unknown:
		return &InvalidError{Field: "numbers", Detail: "have one without a state"}
	case n.Shared && n.State != Unknown:
		return &InvalidError{Field: "numbers", Detail: "have one that is another key's, and not unknown"}
	case n.State == Unknown && n.Expires != 0:
		return &InvalidError{Field: "numbers", Detail: "have one that is unknown, and has an end"}
	case (n.Reason != "") != (n.State == Voided) || len(n.Reason) > MaxReasonBytes || !plain(n.Reason):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong reason"}
	case len(n.Label) > MaxLabelBytes || !visible(n.Label):
		return &InvalidError{Field: "numbers", Detail: "have one with a wrong label"}
	case n.Key == "" && !keyless:
		return &InvalidError{Field: "numbers", Detail: "have one without a key"}
	case n.Key == "":
		return nil
	case n.Shared:
		return checkKeys([]string{n.Key})
	case fresh[n.Key]:
		return &InvalidError{Field: "keys", Detail: "are known already"}
	}
	fresh[n.Key] = true
	return s.checkNew(n.Key)
}

// checkNew refuses a key that is none, or that the series knows.
func (s *Series) checkNew(key string) error {
	if err := checkKeys([]string{key}); err != nil {
		return err
	}
	if s.knows(key) {
		return &InvalidError{Field: "keys", Detail: "are known already"}
	}
	return nil
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
		return &InvalidError{Field: "number", Detail: "is none"}
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
