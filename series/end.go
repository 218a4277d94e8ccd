package series

import (
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// End gives the numbers of keys their last state, or none of them: confirmed, voided or released. The
// error is *Error. What has happened already is no error.
//
// A number whose time has ended is confirmed if no other key has got it, and if the policy did not
// void it; an unknown one if it is the key's own. The first reason of a voided number stays. Another
// key may get a released number, or it is voided, as the policy says. Unknown ones are voided.
func (s *Series) End(now int64, m *raftlogv1.SeriesEnd) ([]*raftlogv1.SeriesNumber, error) {
	e, err := s.ending(m)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(m.GetKeys()))
	for i, b := range m.GetKeys() {
		names[i] = b.GetKey()
	}
	if err := checkKeys(names); err != nil {
		return nil, err
	}
	s.advance(now)
	refs := make([]ref, len(names))
	for i, b := range m.GetKeys() {
		if refs[i], err = s.judge(b, e); err != nil {
			return nil, err
		}
	}
	// The last numbers first: those that are given back together go back together.
	for _, at := range slices.Backward(slices.Sorted(slices.Values(refs))) {
		if at != 0 {
			s.end(at, e)
		}
	}
	numbers := make([]*raftlogv1.SeriesNumber, len(names))
	for i, at := range refs {
		if at == 0 {
			lost, _ := s.lost.Get(names[i])
			numbers[i] = &raftlogv1.SeriesNumber{Key: names[i], Number: lost.number, State: uint32(Released)}
			continue
		}
		numbers[i] = s.number(s.scopes.at(at.scope()), at.number())
	}
	return numbers, nil
}

// end gives a number that is judged its last state.
func (s *Series) end(at ref, e ending) {
	c := s.scopes.own(at.scope())
	state, _ := s.stateOf(c.at(at.number()))
	switch {
	case state == Open && e.state == Released && !s.goesBack(c, at.number()):
		c.end(at.number(), Voided, e.reason)
	case state == Open:
		c.end(at.number(), e.state, e.reason)
	case state == Unknown:
		c.end(at.number(), min(e.state, Voided), e.reason)
	}
	s.settle(c, settledByKey)
}

// ending is what open numbers become.
type ending struct {
	state  NumberState
	reason string
	// release means that their callers give them back: those that did so before did it.
	release bool
}

// ending returns what a request makes of open numbers.
func (s *rules) ending(m *raftlogv1.SeriesEnd) (ending, error) {
	switch state := NumberState(small(m.GetState())); state {
	case Confirmed:
		return ending{state: Confirmed}, nil
	case Voided:
		return ending{state: Voided, reason: m.GetReason()}, checkReason(m.GetReason())
	case Released:
		return ending{state: state, reason: ReasonReleased, release: true}, nil
	default:
		return ending{}, invalid("state", "is no last state of a number")
	}
}

func checkReason(reason string) error {
	if reason == "" || len(reason) > MaxReasonBytes || !visible(reason) {
		return invalid("reason", "is not of 1 to 128 bytes without invisible characters")
	}
	return nil
}

// allows reports whether a number may be asked to end so.
func (e ending) allows(is NumberState, reason string) bool {
	if e.release && (is == Released || is == Voided && reason == ReasonReleased) {
		return true
	}
	return is.unended() || is == e.state && !e.release
}

// unended reports whether a number's key can still end it.
func (s NumberState) unended() bool { return s == Open || s == Unknown }

// judge returns where a key's number is; 0 if the key released it, and is asked to again.
func (v *View) judge(b *raftlogv1.SeriesKey, e ending) (ref, error) {
	at := v.index.find(b.GetKey())
	if at == 0 {
		return 0, v.missing(b, e.release)
	}
	c, r := v.record(at)
	number := c.numberOf(at.number())
	state, reason := v.stateOf(r)
	switch {
	case b.GetNumber() != 0 && b.GetNumber() != number:
		return 0, otherNumber(b.GetKey(), number, b.GetNumber())
	case !e.allows(state, reason):
		return 0, wrongState(b.GetKey(), number, state, reason)
	}
	return at, nil
}

// missing returns the outcome for a key without a number, which it may release again.
func (t *keyTable) missing(b *raftlogv1.SeriesKey, release bool) error {
	lost, ok := t.lost.Get(b.GetKey())
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
	c, err := s.scopes.find(values)
	if err != nil {
		return 0, err
	}
	s.scopes.own(c.index).close()
	return c.lastNumber(), nil
}
