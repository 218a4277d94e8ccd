package series

// Bound is a key, and the number that its caller believes it has; 0 is any.
type Bound struct {
	Key    string
	Number int64
}

// Confirm makes the numbers of keys final, or none. A confirmed number stays confirmed. A number
// whose time has ended is confirmed if no other key has got it, and if the policy did not void it.
// An unknown number is confirmed if it is the key's own.
//
// The errors are *InvalidError, *UnknownKeyError, *ExpiredError, *OtherNumberError and
// *StateError.
func (s *Series) Confirm(now int64, keys []Bound) ([]Number, error) {
	return s.end(now, keys, ending{state: Confirmed, allowed: func(is State, _ string) bool { return is.unended() || is == Confirmed }})
}

// Void says that open numbers belong to no document, and why. The first reason stays. The
// errors are those of Confirm.
func (s *Series) Void(now int64, keys []Bound, reason string) ([]Number, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	return s.end(now, keys, ending{
		state: Voided, reason: reason,
		allowed: func(is State, _ string) bool { return is.unended() || is == Voided },
	})
}

func checkReason(reason string) error {
	if reason == "" || len(reason) > MaxReasonBytes || !visible(reason) {
		return &InvalidError{Field: "reason", Detail: "is not of 1 to 128 bytes without invisible characters"}
	}
	return nil
}

// Release gives open numbers back: another key may get them, or they are voided, as the policy
// says. Unknown numbers are voided. The errors are those of Confirm.
func (s *Series) Release(now int64, keys []Bound) ([]Number, error) {
	e := ending{state: Voided, reason: ReasonReleased, release: true, allowed: func(is State, reason string) bool {
		return is.unended() || is == Released || is == Voided && reason == ReasonReleased
	}}
	if s.definition.OnRelease == ReleaseReuses {
		e.state = Released
	}
	return s.end(now, keys, e)
}

// ending is what open numbers become.
type ending struct {
	state  State
	reason string
	// release means that their callers give them back: those that did so before did it.
	release bool
	// allowed says of which numbers it may be asked.
	allowed func(state State, reason string) bool
}

// end gives open numbers their last state.
func (s *Series) end(now int64, keys []Bound, e ending) ([]Number, error) {
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
		at, err := s.judge(now, b, e)
		if err != nil {
			return nil, err
		}
		refs[i] = at
	}
	numbers := make([]Number, len(keys))
	for i, at := range refs {
		if at == 0 {
			lost, _ := s.lost.Get(names[i])
			numbers[i] = Number{Key: names[i], Number: lost.number, State: Released}
			continue
		}
		c := s.scopes.own(at.scope())
		switch state, _ := s.stateOf(c.at(at.number()), now); state {
		case Open:
			c.end(at.number(), e.state, e.reason)
		case Unknown:
			c.end(at.number(), min(e.state, Voided), e.reason)
		}
		s.settle(c, now, settledByKey)
		numbers[i] = s.number(c, at.number(), now)
	}
	return numbers, nil
}

// unended reports whether a number's key can still end it.
func (s State) unended() bool { return s == Open || s == Unknown }

// judge returns where a key's number is; 0 if the key released it, and is asked to again.
func (s *Series) judge(now int64, b Bound, e ending) (ref, error) {
	at := s.index.find(b.Key)
	if at == 0 {
		return 0, s.missing(b, e.release)
	}
	number := at.number()
	state, reason := s.stateOf(s.scopes.at(at.scope()).at(number), now)
	switch {
	case b.Number != 0 && b.Number != number:
		return 0, &OtherNumberError{Key: b.Key, Number: number, Claimed: b.Number}
	case !e.allowed(state, reason):
		return 0, &StateError{Key: b.Key, Number: number, State: state, Reason: reason}
	}
	return at, nil
}

// missing returns the outcome for a key without a number. Releasing a missing number
// succeeds.
func (s *Series) missing(b Bound, release bool) error {
	lost, ok := s.lost.Get(b.Key)
	switch {
	case !ok:
		return &UnknownKeyError{Key: b.Key}
	case b.Number != 0 && b.Number != lost.number:
		return &OtherNumberError{Key: b.Key, Number: lost.number, Claimed: b.Number}
	case release:
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
	s.advance(now)
	c, err := s.find(values)
	if err != nil {
		return 0, err
	}
	s.scopes.own(c.index).close()
	return c.last, nil
}

// find returns a scope, to read it. The error is *UnknownScopeError.
func (s *Series) find(values []string) (*scope, error) {
	i, ok := s.byName[scopeName(values)]
	if !ok || len(s.scopes.at(i).values) != len(values) { // A value with a slash could have the same name.
		return nil, &UnknownScopeError{Scope: values}
	}
	return s.scopes.at(i), nil
}
