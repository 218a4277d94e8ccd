package series

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// End gives the numbers of keys their last state, or none of them: confirmed, voided or released. The
// error is *Error.
//
// A confirmed number is final, and stays confirmed. A number whose time has ended is confirmed if no
// other key has got it, and if the policy did not void it. An unknown number is confirmed if it is
// the key's own.
//
// A voided number belongs to no document; the first reason stays.
//
// Another key may get a released number, or it is voided, as the policy says. Unknown numbers are
// voided.
func (s *Series) End(now int64, m *raftlogv1.SeriesEnd) ([]*raftlogv1.SeriesNumber, error) {
	e := ending{state: State(small(m.GetState()))}
	switch e.state {
	case Confirmed:
	case Voided:
		e.reason = m.GetReason()
		if err := checkReason(e.reason); err != nil {
			return nil, err
		}
	case Released:
		e.release, e.reason = true, ReasonReleased
		if s.definition.OnRelease == ReleaseVoids {
			e.state = Voided
		}
	default:
		return nil, invalid("state", "is no last state of a number")
	}
	return s.end(now, m.GetKeys(), e)
}

func checkReason(reason string) error {
	if reason == "" || len(reason) > MaxReasonBytes || !visible(reason) {
		return invalid("reason", "is not of 1 to 128 bytes without invisible characters")
	}
	return nil
}

// ending is what open numbers become.
type ending struct {
	state  State
	reason string
	// release means that their callers give them back: those that did so before did it.
	release bool
}

// allows reports whether a number may be asked to end so.
func (e ending) allows(is State, reason string) bool {
	if e.release && (is == Released || is == Voided && reason == ReasonReleased) {
		return true
	}
	return is.unended() || is == e.state && !e.release
}

// end gives open numbers their last state.
func (s *Series) end(now int64, keys []*raftlogv1.SeriesKey, e ending) ([]*raftlogv1.SeriesNumber, error) {
	names := make([]string, len(keys))
	for i, b := range keys {
		names[i] = b.GetKey()
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
	numbers := make([]*raftlogv1.SeriesNumber, len(keys))
	for i, at := range refs {
		if at == 0 {
			lost, _ := s.lost.Get(names[i])
			numbers[i] = &raftlogv1.SeriesNumber{Key: names[i], Number: lost.number, State: uint32(Released)}
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
func (s *Series) judge(now int64, b *raftlogv1.SeriesKey, e ending) (ref, error) {
	at := s.index.find(b.GetKey())
	if at == 0 {
		return 0, s.missing(b, e.release)
	}
	number := at.number()
	state, reason := s.stateOf(s.scopes.at(at.scope()).at(number), now)
	switch {
	case b.GetNumber() != 0 && b.GetNumber() != number:
		return 0, otherNumber(b.GetKey(), number, b.GetNumber())
	case !e.allows(state, reason):
		return 0, wrongState(b.GetKey(), number, state, reason)
	}
	return at, nil
}

// missing returns the outcome for a key without a number. Releasing a missing number
// succeeds.
func (s *Series) missing(b *raftlogv1.SeriesKey, release bool) error {
	lost, ok := s.lost.Get(b.GetKey())
	switch {
	case !ok:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_NOT_FOUND, "keys", "key %q has no number", b.GetKey())
	case b.GetNumber() != 0 && b.GetNumber() != lost.number:
		return otherNumber(b.GetKey(), lost.number, b.GetNumber())
	case release:
		return nil
	case lost.released:
		return wrongState(b.GetKey(), lost.number, Released, "")
	default:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_EXPIRED, "keys",
			"the reservation of key %q has expired, and another key has number %d", b.GetKey(), lost.number)
	}
}

// CloseScope ends a scope: it gives no more numbers, and those that are open can still be
// ended. It returns the last number. The error is *Error.
func (s *Series) CloseScope(now int64, values []string) (int64, error) {
	s.advance(now)
	c, err := s.find(values)
	if err != nil {
		return 0, err
	}
	s.scopes.own(c.index).close()
	return c.last, nil
}

// find returns a scope, to read it. The error is *Error.
func (s *Series) find(values []string) (*scope, error) {
	if c := s.lookUp(values); c != nil {
		return c, nil
	}
	return nil, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND, "scope", "%s has no numbers", name(values))
}

// lookUp returns a scope, to read it; nil if there is none.
func (s *Series) lookUp(values []string) *scope {
	i, ok := s.byName[scopeName(values)]
	if !ok || len(s.scopes.at(i).values) != len(values) { // A value with a slash could have the same name.
		return nil
	}
	return s.scopes.at(i)
}
