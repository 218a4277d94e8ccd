package series_test

import (
	"fmt"
	"strings"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// TestTextsHaveAtMostALength: a format that has more from the start is refused, and a take that
// would have more is full. Neither changes anything.
func TestTextsHaveAtMostALength(t *testing.T) {
	branches := []*raftlogv1.SeriesAllowed{{Name: "branch", Values: []string{"B", "BONN"}}}
	for _, tt := range []struct {
		d      series.Definition
		length uint32
		branch string
		most   int64 // 0 is a definition that is refused.
	}{
		{series.Definition{Format: "SINV/26-27/{number:6+}"}, 16, "", 0},
		{series.Definition{Format: "INV/26-27/{number:5+}"}, 16, "", 999_999},
		{series.Definition{Format: "INV/26-27/{number:5}"}, 16, "", 99_999},
		{series.Definition{Format: "{branch}-{number}"}, 17, "", 0},
		{series.Definition{Format: "{branch}-{number}"}, 18, "0123456789abcdef", 9},
		{series.Definition{Format: "{branch}-{number}", Allowed: branches}, 5, "", 0},
		{series.Definition{Format: "{branch}-{number}", Allowed: branches}, 6, "bonn", 9},
		{series.Definition{Format: "{branch}-{number}", Allowed: branches}, 6, "B", 9999},
	} {
		tt.d.MaxLength = tt.length
		s, err := series.New(tt.d)
		if refused := wrongField(err) == "max_length"; refused != (tt.most == 0) {
			t.Errorf("%+v: %v", tt.d, err)
		}
		if err != nil {
			continue
		}
		q := series.Request{Date: today, Today: today, Keys: []string{"a"}}
		scope := []string{}
		if tt.branch != "" {
			q.Values, scope = []string{tt.branch}, []string{tt.branch}
		}
		if err := s.Redefine(1, tt.d, 1, &raftlogv1.SeriesBegin{Scope: scope, First: tt.most + 1}); wrongField(err) != "begins" {
			t.Errorf("%+v begins beyond its length: %v", tt.d, err)
		}
		if err := s.Redefine(1, tt.d, 1, &raftlogv1.SeriesBegin{Scope: scope, First: tt.most}); err != nil {
			t.Fatal(err)
		}
		if n := mustTake(t, s, 1, q)[0]; n.Number != tt.most {
			t.Errorf("%+v: %+v", tt.d, n)
		}
		hash := s.Hash()
		q.Keys = []string{"b"}
		if _, err := s.TakeFor(1, q); kind(err) != "full" && kind(err) != "width" || s.Hash() != hash {
			t.Errorf("%+v: %v", tt.d, err)
		}
	}
}

// TestValuesThatAreAllowed: a call gives no others, in any case; what was given before stays.
func TestValuesThatAreAllowed(t *testing.T) {
	d := series.Definition{Format: "{branch}-{number}"}
	s := newSeries(t, d)
	take := func(branch, key string) ([]*raftlogv1.SeriesNumber, error) {
		return s.TakeFor(1, series.Request{Values: []string{branch}, Date: today, Today: today, Keys: []string{key}})
	}
	if first, err := take("BERLN", "a"); err != nil || !s.Begun(first) {
		t.Errorf("a mistyped branch: %v, %v", first, err)
	}
	if second, err := take("BERLN", "b"); err != nil || s.Begun(second) {
		t.Errorf("%v, %v", second, err)
	}
	d.Allowed = []*raftlogv1.SeriesAllowed{{Name: "branch", Values: []string{"BERLIN", "HAMBURG"}}}
	if err := s.Redefine(1, d, 1); err != nil || !s.Repeats(d, 1) {
		t.Fatal(err)
	}
	hash := s.Hash()
	const why = "values have BERLN for {branch}, which is none of BERLIN, HAMBURG"
	if _, err := take("BERLN", "c"); wrongField(err) != "values" || says(err) != why || s.Hash() != hash {
		t.Errorf("another branch: %v", err)
	}
	if again, err := take("berln", "a"); err != nil || again[0].Text != "BERLN-1" {
		t.Errorf("a key that has its number: %v, %v", again, err)
	}
	if first, err := take("berlin", "c"); err != nil || first[0].Number != 1 || s.Begun(first) {
		t.Errorf("%v, %v", first, err)
	}
	if s = restored(t, s.Freeze()); !s.Repeats(d, 1) {
		t.Error("a snapshot loses what is allowed")
	}
	if err := s.Redefine(1, d, 2, &raftlogv1.SeriesBegin{Scope: []string{"BONN"}, First: 2}); wrongField(err) != "begins" {
		t.Errorf("another branch begins: %v", err)
	}
}

// TestAllowedValuesThatCannotBe are refused, and nothing changes.
func TestAllowedValuesThatCannotBe(t *testing.T) {
	var many []string
	for i := range series.MaxAllowed {
		many = append(many, fmt.Sprint(i))
	}
	allow := func(all ...*raftlogv1.SeriesAllowed) error {
		_, err := series.New(series.Definition{Format: "{branch}-{number}", Allowed: all})
		return err
	}
	if err := allow(&raftlogv1.SeriesAllowed{Name: "branch", Values: many}); err != nil {
		t.Error(err)
	}
	one := &raftlogv1.SeriesAllowed{Name: "branch", Values: []string{"A"}}
	if err := allow(one, one); wrongField(err) != "allowed" {
		t.Errorf("a name twice: %v", err)
	}
	if err := allow(&raftlogv1.SeriesAllowed{Name: "till", Values: []string{"1"}}); wrongField(err) != "allowed" {
		t.Errorf("a name that the format does not have: %v", err)
	}
	for _, values := range [][]string{{}, {""}, {"A-B"}, {"a", "A"}, {strings.Repeat("x", 17)}, append(many, "x")} {
		if err := allow(&raftlogv1.SeriesAllowed{Name: "branch", Values: values}); wrongField(err) != "allowed" {
			t.Errorf("%q: %v", values, err)
		}
	}
}
