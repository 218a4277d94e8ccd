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
	fresh, err := s.At(now).judgeDefinition(d, expected, begins)
	if err != nil {
		return err
	}
	s.advance(now)
	s.voidedUntil = s.voidedBy() // What is voided stays so.
	if fresh != nil {
		s.contents, s.since = newContents(fresh.format), max(s.now, s.since+1)
	}
	s.definition = d
	s.version++
	s.moveTo(begins)
	return nil
}

// Preview returns the error that Redefine would, and how many open numbers it would forget.
func (v *View) Preview(d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) (forgets int64, err error) {
	fresh, err := v.judgeDefinition(d, expected, begins)
	if err != nil || fresh == nil {
		return 0, err
	}
	for c := range v.scopes.from(0) {
		forgets += c.count[Open]
	}
	return forgets, nil
}

// Repeats reports whether the present definition is what such a call made.
func (v *View) Repeats(d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) bool {
	return d == v.definition && expected+1 == v.version && v.begun(begins)
}

// CheckDelete finds why the series may not be deleted. The error is *Error.
func (v *View) CheckDelete(expected int64) error {
	if expected != v.version {
		return wrongVersion(v.version, expected)
	}
	return v.inUse()
}

// judgeDefinition finds why the definition may not change. If all numbers are to be forgotten, it
// returns an empty series of the new one.
func (v *View) judgeDefinition(d Definition, expected int64, begins []*raftlogv1.SeriesBegin) (fresh *Series, err error) {
	switch {
	case expected != v.version:
		return nil, wrongVersion(v.version, expected)
	case v.version == maxVersion:
		return nil, invalid("expected_version", "is the last")
	}
	if changed := d.follows(v.definition); changed != nil {
		if err := v.inUse(); err != nil {
			changed.Detail += ": " + err.Error()
			return nil, changed
		}
	}
	if d.renumbers(v.definition) {
		return New(d, begins...)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return nil, v.checkBegins(begins)
}

// inUse finds why numbers cannot be forgotten: one of them is final, or there may be some
// that a restored series does not know.
func (v *View) inUse() error {
	if v.suspended {
		return suspended()
	}
	for c := range v.scopes.from(0) {
		// All others are final.
		if count, _ := v.count(c); count[Open]+count[Released] < c.last-c.offset {
			return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "name",
				"%s has numbers that are confirmed or voided", name(c.values))
		}
	}
	return nil
}
