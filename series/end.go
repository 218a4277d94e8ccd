package series

import "slices"

// Bound is a key, and the number that its caller believes it has; 0 is any.
type Bound struct {
	Key    string
	Number int64
}

// Confirm makes the numbers of keys final, or none. A number that is confirmed stays so; one whose
// time has ended is confirmed if no other key has got it, and if the policy did not void it.
//
// The errors are *InvalidError, *UnknownKeyError, *ExpiredError, *OtherNumberError and
// *StateError.
func (s *Series) Confirm(now int64, keys []Bound) ([]Number, error) {
	return s.end(now, keys, Confirmed, "", func(r *record, _ string) bool { return r.state == Open || r.state == Confirmed })
}

// Void says that open numbers belong to no document, and why. The first reason stays. The
// errors are those of Confirm.
func (s *Series) Void(now int64, keys []Bound, reason string) ([]Number, error) {
	if reason == "" || len(reason) > MaxReasonBytes || !plain(reason) {
		return nil, &InvalidError{Field: "reason", Detail: "is not of 1 to 128 bytes without control characters"}
	}
	return s.end(now, keys, Voided, reason, func(r *record, _ string) bool { return r.state == Open || r.state == Voided })
}

// Release gives open numbers back: another key may get them, or they are voided, as the
// policy says. The errors are those of Confirm.
func (s *Series) Release(now int64, keys []Bound) ([]Number, error) {
	state := Voided
	if s.definition.OnRelease == ReleaseReuses {
		state = Released
	}
	return s.end(now, keys, state, ReasonReleased, func(r *record, reason string) bool {
		return r.state == Open || r.state == Released || r.state == Voided && reason == ReasonReleased
	})
}

// end gives open numbers their last state. allowed says of which records it may be asked.
func (s *Series) end(now int64, keys []Bound, state State, reason string, allowed func(*record, string) bool) ([]Number, error) {
	names := make([]string, len(keys))
	for i, b := range keys {
		names[i] = b.Key
	}
	if err := checkKeys(names); err != nil {
		return nil, err
	}
	now = s.advance(now)
	refs := make([]ref, len(keys))
	for i, b := range keys {
		at, err := s.judge(now, b, state, allowed)
		if err != nil {
			return nil, err
		}
		refs[i] = at
	}
	numbers := make([]Number, len(keys))
	for i, at := range refs {
		if at == 0 {
			numbers[i] = Number{Key: names[i], Number: s.lost[names[i]].number, State: Released}
			continue
		}
		c := s.scopes[at.scope()]
		if r := c.at(at.number()); r.state == Open {
			c.end(at.number(), r, state, reason)
		}
		numbers[i] = s.number(c, at.number(), now)
	}
	return numbers, nil
}

// judge returns where a key's number is; 0 if the key released it, and is asked to again.
func (s *Series) judge(now int64, b Bound, state State, allowed func(*record, string) bool) (ref, error) {
	at := s.index.find(b.Key)
	if at == 0 {
		return 0, s.missing(b, state)
	}
	c, number := s.scopes[at.scope()], at.number()
	c.settle(now, s.definition.OnExpiry)
	r := c.at(number)
	switch reason := c.reasons[number]; {
	case b.Number != 0 && b.Number != number:
		return 0, &OtherNumberError{Key: b.Key, Number: number, Claimed: b.Number}
	case !allowed(r, reason):
		return 0, &StateError{Key: b.Key, Number: number, State: r.state, Reason: reason}
	}
	return at, nil
}

// missing says what became of the number of a key that has none.
func (s *Series) missing(b Bound, state State) error {
	lost, ok := s.lost[b.Key]
	switch {
	case !ok:
		return &UnknownKeyError{Key: b.Key}
	case b.Number != 0 && b.Number != lost.number:
		return &OtherNumberError{Key: b.Key, Number: lost.number, Claimed: b.Number}
	case state == Released:
		return nil
	case lost.released:
		return &StateError{Key: b.Key, Number: lost.number, State: Released}
	default:
		return &ExpiredError{Key: b.Key, Number: lost.number}
	}
}

// CloseScope ends a scope: it gives no more numbers, and those that are open can still be
// ended. It returns the last number. The error is *UnknownScopeError.
func (s *Series) CloseScope(now int64, values []string) (int64, error) {
	now = s.advance(now)
	c, err := s.find(values)
	if err != nil {
		return 0, err
	}
	c.settle(now, s.definition.OnExpiry)
	c.closed = true
	return c.last, nil
}

func (s *Series) find(values []string) (*scope, error) {
	i, ok := s.byName[scopeName(values)]
	if !ok || !slices.Equal(s.scopes[i].values, values) {
		return nil, &UnknownScopeError{Scope: values}
	}
	return s.scopes[i], nil
}
