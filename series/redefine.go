package series

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// Redefine changes the definition, and where scopes without numbers begin, if the
// definition has the expected version.
//
// As long as no number is final it may change every part; another format or period then
// forgets all numbers, keys and scopes. Afterwards, and while the series is suspended,
// format and period stay, and policies become stricter alone.
//
// The errors are *Error and those of format.Define.
func (s *Series) Redefine(now int64, d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) error {
	fresh, err := s.judgeDefinition(now, d, expected, begins)
	if err != nil {
		return err
	}
	// What is voided stays so.
	s.voidedUntil = s.voidedBy(s.advance(now))
	if fresh != nil {
		s.clear()
		s.format, s.since = fresh.format, max(s.now, s.since+1)
	}
	s.definition = d
	s.version++
	s.moveTo(begins)
	return nil
}

// Preview returns the error that Redefine would, and how many open numbers it would forget.
// It changes nothing.
func (s *Series) Preview(now int64, d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) (forgets int64, err error) {
	fresh, err := s.judgeDefinition(now, d, expected, begins)
	if err != nil || fresh == nil {
		return 0, err
	}
	for c := range s.scopes.from(0) {
		forgets += c.count[Open]
	}
	return forgets, nil
}

// Repeats reports whether the present definition is what such a call made.
func (s *Series) Repeats(d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) bool {
	return d == s.definition && expected+1 == s.version && s.begun(begins)
}

// CheckDelete finds why the series may not be deleted. The error is *Error.
func (s *Series) CheckDelete(now, expected int64) error {
	if expected != s.version {
		return wrongVersion(s.version, expected)
	}
	return s.inUse(now)
}

// judgeDefinition finds why the definition may not change. It returns an empty series of the new one
// if all numbers are to be forgotten.
func (s *Series) judgeDefinition(now int64, d Definition, expected int64, begins []*raftlogv1.SeriesBegin) (fresh *Series, err error) {
	switch {
	case expected != s.version:
		return nil, wrongVersion(s.version, expected)
	case s.version == maxVersion:
		return nil, invalid("expected_version", "is the last")
	}
	if changed := d.follows(s.definition); changed != nil {
		if err := s.inUse(now); err != nil {
			changed.Detail += ": " + err.Error()
			return nil, changed
		}
	}
	if d.renumbers(s.definition) {
		return New(d, begins...)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return nil, s.checkBegins(begins)
}

// inUse finds why numbers cannot be forgotten: one of them is final, or there may be some
// that a restored series does not know.
func (s *Series) inUse(now int64) error {
	if s.suspended {
		return suspended()
	}
	for c := range s.scopes.from(0) {
		// All others are final.
		if count, _ := s.count(c, max(now, s.now)); count[Open]+count[Released] < c.last-c.offset {
			return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "name",
				"%s has numbers that are confirmed or voided", name(c.values))
		}
	}
	return nil
}
