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

// Forgotten counts open numbers and allotments.
type Forgotten struct{ Numbers, Allotments int64 }

// Preview returns the error that Redefine would, and what it would forget.
func (v *View) Preview(d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) (forgets Forgotten, err error) {
	fresh, err := v.judgeDefinition(d, expected, begins)
	if err != nil || fresh == nil {
		return forgets, err
	}
	for c := range v.scopes.from(0) {
		forgets.Numbers += c.count[Open]
		if c.allotted != nil {
			forgets.Allotments += int64(len(c.allotted.ranges))
		}
	}
	return forgets, nil
}

// Repeats reports whether the present definition is what such a call made.
func (v *View) Repeats(d Definition, expected int64, begins ...*raftlogv1.SeriesBegin) bool {
	return d.equal(v.definition) && expected+1 == v.version && v.begun(begins)
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
	if d.OnRelease == ReleaseReusesNewest && v.definition.OnRelease == ReleaseReuses && v.waiting() {
		return nil, invalid("on_release", "cannot change so while released numbers wait for other keys")
	}
	if err := d.check(v.format); err != nil {
		return nil, err
	}
	return nil, v.checkBegins(&d, begins)
}

// waiting reports whether a number is released.
func (v *View) waiting() bool {
	for c := range v.scopes.from(0) {
		if c.count[Released] > 0 {
			return true
		}
	}
	return false
}

// inUse finds why numbers cannot be forgotten: one of them is final, or there may be some
// that a restored series does not know.
func (v *View) inUse() error {
	if v.suspended {
		return suspended()
	}
	for c := range v.scopes.from(0) {
		if count, _ := v.count(c); count[Confirmed]+count[Voided]+count[Unknown] > 0 {
			return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "name",
				"%s has numbers that are confirmed or voided", name(c.values))
		}
	}
	return nil
}
