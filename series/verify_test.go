package series

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// TestVerifyFindsDamage changes one thing at a time in a series that has a number in each
// state: 1 open, 2 confirmed, 3 voided, 4 released.
func TestVerifyFindsDamage(t *testing.T) {
	for detail, damage := range map[string]func(*Series, *scope){
		"is in no state":            func(_ *Series, c *scope) { c.at(2).state = 0 },
		"is not found":              func(_ *Series, c *scope) { c.finder = &finder{levels: [][]span{{nothing}}} },
		"has a deadline":            func(_ *Series, c *scope) { c.at(2).state = Open },
		"has a reason":              func(_ *Series, c *scope) { c.at(3).write("c", "", "") },
		"has no key":                func(_ *Series, c *scope) { c.at(1).write("", "", "") },
		"that has lost its number":  func(s *Series, _ *scope) { s.lose("a", lostKey{number: 1}) },
		"has a key that leads":      func(s *Series, _ *scope) { s.index.set("b", refOf(0, 1)) },
		"the sums of the states":    func(_ *Series, c *scope) { c.count[Open]++ },
		"does not exist, and a key": func(s *Series, _ *scope) { s.index.len++ },
		"do not have the last number": func(_ *Series, c *scope) {
			c.allotted = &allotments{ranges: []allotment{{from: 3, to: 4, starts: 3}, {from: 9, to: 20, starts: 5}}}
		},
		"numbers that were given": func(_ *Series, c *scope) { c.allotted = &allotments{ranges: []allotment{{from: 4, to: 9}}} },
		"begins elsewhere":        func(_ *Series, c *scope) { c.allotted = &allotments{ranges: []allotment{{from: 2, to: 9, starts: 4}}} },
		"ranges that overlap": func(_ *Series, c *scope) {
			c.allotted = &allotments{ranges: []allotment{{from: 6, to: 9}, {from: 9, to: 9}}}
		},
		"is the last, and the sums o": func(_ *Series, c *scope) { c.count[Released]-- },
	} {
		s, err := New(Definition{Format: "{number}", OnRelease: ReleaseReuses, ExpiresIn: 100})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.TakeFor(1, Request{Date: format.DateOf(2026, 1, 1), Today: format.DateOf(2026, 1, 1), Keys: []string{"a", "b", "c", "d"}})
		_, err2 := s.Confirm(2, []*raftlogv1.SeriesKey{{Key: "b"}})
		_, err3 := s.Void(2, []*raftlogv1.SeriesKey{{Key: "c"}}, "torn")
		_, err4 := s.Release(2, []*raftlogv1.SeriesKey{{Key: "d"}})
		if err := errors.Join(err, err2, err3, err4, s.Verify()); err != nil {
			t.Fatal(err)
		}
		damage(s, s.scopes.own(0))
		err = s.Verify()
		_, _, some := s.VerifySome(VerifyCursor{}, 100)
		countedAgain := detail == "does not exist, and a key"
		if wrong := (*VerifyError)(nil); errors.As(some, &wrong) == countedAgain || !countedAgain && some.Error() != err.Error() {
			t.Errorf("%s: %v in pieces", detail, some)
		}
		if wrong := (*VerifyError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), detail) {
			t.Errorf("%s: %v", detail, err)
		}
	}
}

// TestAVerificationLooksAtFewAtOnce: also at few scopes, which may have no numbers.
func TestAVerificationLooksAtFewAtOnce(t *testing.T) {
	const scopes, limit = 100, 10
	begins := make([]*raftlogv1.SeriesBegin, scopes)
	for i := range begins {
		begins[i] = &raftlogv1.SeriesBegin{Scope: []string{fmt.Sprint("B", i)}, First: 5}
	}
	s, err := New(Definition{Format: "{branch}-{number}"}, begins...)
	if err != nil {
		t.Fatal(err)
	}
	at, calls := VerifyCursor{}, 0
	for more := true; more; calls++ {
		if at, more, err = s.VerifySome(at, limit); err != nil {
			t.Fatal(err)
		}
	}
	if calls < scopes/limit {
		t.Errorf("%d scopes in %d calls that may look at %d each", scopes, calls, limit)
	}
}

// TestAnyCursorEnds: also one of a series that has been deleted and begun anew.
func TestAnyCursorEnds(t *testing.T) {
	s, err := New(Definition{Format: "{number}"})
	_, err2 := s.TakeFor(1, Request{Keys: []string{"a", "b"}})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"0:0:0:", "0:0:2:", "0:0:9223372036854775807:", "0:1:0:", "0:2147483647:7:key:1"} {
		at, ok := ParseVerifyCursor(text)
		if _, more, err := s.VerifySome(at, 10); !ok || at.String() != text || more || err != nil {
			t.Errorf("%s: %v is %v, %t, %v", text, ok, at, more, err)
		}
	}
}

// TestACursorOfASeriesOfBeforeBeginsAgain: what was verified of one that was deleted says nothing
// of the one that has its name now.
func TestACursorOfASeriesOfBeforeBeginsAgain(t *testing.T) {
	begun := func(now int64) *Series {
		s, err := New(Definition{Format: "{number}"})
		s.BeginAt(now)
		_, err2 := s.TakeFor(now, Request{Keys: []string{"a", "b", "c"}})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return s
	}
	old, young := begun(1), begun(2)
	at, _, _ := old.VerifySome(VerifyCursor{}, 2)
	want, _, _ := young.VerifySome(VerifyCursor{}, 1)
	if got, more, err := young.VerifySome(at, 1); got != want || !more || err != nil {
		t.Errorf("goes on at %v, %t, %v, want %v", got, more, err, want)
	}
}

// TestErrorsSayWhat: each error names what its caller needs to act.
func TestErrorsSayWhat(t *testing.T) {
	scope, day := []string{"2026", "BERLIN"}, format.DateOf(2026, 11, 23)
	s, err := New(Definition{Format: "{number}", Order: OrderDates})
	if err != nil {
		t.Fatal(err)
	}
	_, missing := s.Release(1, []*raftlogv1.SeriesKey{{Key: "a"}})
	_, noScope := s.CloseScope(1, nil)
	_, err1 := s.TakeFor(1, Request{Date: day, Today: day, Keys: []string{"b"}})
	_, back := s.TakeFor(1, Request{Date: day - 1, Today: day, Keys: []string{"c"}})
	_, err2 := s.CloseScope(1, nil)
	_, closed := s.TakeFor(1, Request{Date: day, Today: day, Keys: []string{"c"}})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"keys are not 1 to 1000":                 invalid("keys", "are not 1 to 1000"),
		"the definition has version 2, not 1":    wrongVersion(2, 1),
		`key "a" has number 7 of 2026 BERLIN`:    conflict(&raftlogv1.SeriesNumber{Key: "a", Number: 7, Scope: scope, Date: int32(day)}),
		"series is closed, its last number is 1": closed,
		"date 2026-11-22 is before 2026-11-23":   back,
		"the series may have 9 keys":             full(9, "keys"),
		`key "a" has no number`:                  missing,
		"the series has no numbers":              noScope,
		`number 7 of key "a" is voided: torn`:    wrongState("a", 7, Voided, "torn"),
		`number 7 of key "a" is confirmed`:       wrongState("a", 7, Confirmed, ""),
		`key "a" has number 7, not 8`:            otherNumber("a", 7, 8),
		"number 7 of 2026 BERLIN is in no state": &VerifyError{Scope: scope, Number: 7, Detail: "is in no state"},
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
