package series_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// inBranch takes a number of a branch, as it is spelled.
func inBranch(t *testing.T, s *series.Series, branch string, year int, key string) *raftlogv1.SeriesNumber {
	t.Helper()
	return mustTake(t, s, 1,
		series.Request{
			Values: []string{branch}, Date: format.DateOf(year, time.May, 1), Today: format.DateOf(year, time.May, 1),
			Keys: []string{key},
		})[0]
}

// TestSpellingsAreOneScope: values have no case, as all other names. A scope keeps the
// spelling of its first number.
func TestSpellingsAreOneScope(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{branch}-{year}-{number:2}", Reset: format.ResetYear})
	for i, branch := range []string{"Ad", "ad", "AD"} {
		if n := inBranch(t, s, branch, 2026, branch); n.Number != int64(i+1) || n.Text != "Ad-2026-0"+string(rune('1'+i)) {
			t.Errorf("%s got %s", branch, n.Text)
		}
	}
	if n := inBranch(t, s, "AD", 2026, "ad"); n.Number != 2 {
		t.Errorf("a retry in another spelling got %s", n.Text)
	}
	if n := inBranch(t, s, "aD", 2027, "new"); n.Text != "aD-2027-01" {
		t.Errorf("the next year begins with %s", n.Text)
	}
	if before := s.Before([]*raftlogv1.SeriesNumber{{Scope: []string{"2027", "AD"}, Number: 1}}); before.GetLast() != 3 ||
		before.Scope[1] != "Ad" {
		t.Errorf("the year before ended with %+v", before)
	}
	if found, ok, err := s.At(1).Find("AD-2026-02"); err != nil || !ok || found.Text != "Ad-2026-02" {
		t.Errorf("found %+v, %v", found, err)
	}
	if all, _, err := s.At(1).Numbers([]string{"2026", "aD"}, 0, 0, 10); err != nil || len(all) != 3 {
		t.Errorf("listed %+v, %v", all, err)
	}
	if last, err := s.CloseScope(1, []string{"2026", "ad"}); err != nil || last != 3 || len(s.At(1).Report(0, 9, 0)) != 2 {
		t.Errorf("closed at %d, %v, of %+v", last, err, s.At(1).Report(0, 9, 0))
	}
}

// TestSpellingsMeetAfterARestore: in the numbers of a backup and those of the books.
func TestSpellingsMeetAfterARestore(t *testing.T) {
	d := series.Definition{Format: "{branch}-{fiscal-year:04-01}-{number:2}", Reset: format.ResetFiscalYear}
	backup, s := newSeries(t, d), newSeries(t, d)
	for _, key := range []string{"1", "2", "3"} {
		inBranch(t, backup, "ad", 2026, key)
	}
	inBranch(t, s, "AD", 2026, "1")
	merge(t, s, backup.Freeze())
	if x := s.At(1).Report(0, 9, 0); len(x) != 1 || x[0].Last != 3 || x[0].Scope[1] != "AD" {
		t.Fatalf("merged into %+v", x)
	}
	s.Suspend()
	both := []*raftlogv1.SeriesInBooks{{Scope: []string{"FY2026", "Ad"}, Last: 5}, {Scope: []string{"fy2026", "aD"}, Last: 5}}
	if err := s.Resume(1, both, false); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a scope in two spellings: %v", err)
	}
	both[1].Scope = []string{"fy2027", "Ad"}
	if err := s.Resume(1, both, false); err != nil {
		t.Fatal(err)
	}
	x := s.At(1).Report(0, 9, 0)
	if len(x) != 2 || x[0].Last != 5 || !slices.Equal(x[1].Scope, []string{"FY2027", "Ad"}) {
		t.Errorf("resumed as %+v", x)
	}
	if n := inBranch(t, s, "AD", 2027, "4"); n.Text != "Ad-2027-06" {
		t.Errorf("goes on with %s", n.Text)
	}
}

// TestAValueHasNoSlash: two values of one scope, and one with a slash, are no spellings.
func TestAValueHasNoSlash(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a"))
	for _, scope := range [][]string{{"2026/BERLIN"}, {"2026", "BER", "LIN"}, {"2026", "BERLIN", ""}, nil} {
		if _, err := s.CloseScope(1, scope); err == nil {
			t.Errorf("closed %q", scope)
		}
	}
}
