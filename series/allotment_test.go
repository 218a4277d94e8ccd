package series_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// rangeOf is a range without an end in time.
func rangeOf(from, to int64) *raftlogv1.SeriesAllotment {
	return &raftlogv1.SeriesAllotment{From: from, To: to}
}

func rangeUntil(from, to int64, until format.Date) *raftlogv1.SeriesAllotment {
	return &raftlogv1.SeriesAllotment{From: from, To: to, Until: proto.Int32(int32(until))}
}

// allotted allots ranges to the only scope of a series.
func allotted(t *testing.T, s *series.Series, ranges ...*raftlogv1.SeriesAllotment) {
	t.Helper()
	for _, a := range ranges {
		if err := s.Allot(1, &raftlogv1.SeriesAllot{Allotment: a}); err != nil {
			t.Fatal(err)
		}
	}
}

// takeMany takes as many numbers, and returns the last.
func takeMany(t *testing.T, s *series.Series, name string, count int) (last *raftlogv1.SeriesNumber) {
	t.Helper()
	for i := range count {
		last = mustTake(t, s, 1, of(today, fmt.Sprint(name, i)))[0]
	}
	return last
}

// on is a request on a day.
func on(day format.Date, keys ...string) series.Request {
	q := of(day, keys...)
	q.Today = day
	return q
}

// TestAllotmentsThatCannotBe are refused, and change nothing.
func TestAllotmentsThatCannotBe(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number:4}"})
	mustTake(t, s, 1, of(today, "a", "b"))
	allotted(t, s, rangeOf(5, 9))
	mustTake(t, s, 1, of(today, "c"))
	allotted(t, s, rangeOf(20, 29))
	for name, m := range map[string]*raftlogv1.SeriesAllot{
		"nothing":               {},
		"above the format":      {Allotment: rangeOf(9_999, 10_000)},
		"below what is given":   {Allotment: rangeOf(3, 4)},
		"over another one":      {Allotment: rangeOf(29, 30)},
		"around another one":    {Allotment: rangeOf(19, 30)},
		"the wrong way around":  {Allotment: rangeOf(50, 49)},
		"a long note":           {Allotment: &raftlogv1.SeriesAllotment{From: 50, To: 60, Note: strings.Repeat("n", series.MaxNoteBytes+1)}},
		"an invisible note":     {Allotment: &raftlogv1.SeriesAllotment{From: 50, To: 60, Note: "\u202e"}},
		"a date that cannot be": {Allotment: rangeUntil(50, 60, math.MaxInt32)},
		"in a scope of others":  {Scope: []string{"2026"}, Allotment: rangeOf(50, 60)},
		"taken back in part":    {Allotment: rangeOf(20, 28), Withdraw: true},
		"taken back in use":     {Allotment: rangeOf(5, 9), Withdraw: true},
	} {
		hash := s.Hash()
		if err := s.Allot(5, m); err == nil || s.Hash() != hash {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range int64(series.MaxAllotments - 2) {
		allotted(t, s, rangeOf(100+i, 100+i))
	}
	if err := s.Allot(1, &raftlogv1.SeriesAllot{Allotment: rangeOf(900, 901)}); wrongField(err) != "allotments" {
		t.Errorf("one too many: %v", err)
	}
}

// TestAllotmentsAreMergedInPieces, also where a range began behind the piece.
func TestAllotmentsAreMergedInPieces(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	takeMany(t, s, "a", 100)
	allotted(t, s, rangeOf(1001, 1200), rangeOf(2001, 2400))
	takeMany(t, s, "b", 150)
	older := s.Freeze()
	if n := takeMany(t, s, "c", 350); n.Number != 2300 {
		t.Fatalf("%+v", n)
	}
	allotted(t, s, rangeOf(3001, 3001))
	newer := s.Freeze()
	want := fromBackups(t, newer)
	for _, got := range []*series.Series{fromBackups(t, older, newer), fromBackups(t, newer, older), restored(t, want.Freeze())} {
		if sorted(got) != sorted(want) || got.Hash() != want.Hash() {
			t.Errorf("%s\ninstead of\n%s", sorted(got), sorted(want))
		}
	}
	n := want.At(1).Report(0, 1, today)[0]
	if n.Last != 2300 || n.Unknown != 600 || len(n.Allotments) != 3 || n.Allotments[1].Given != 300 {
		t.Errorf("%+v", n)
	}
	// A piece that is merged alone begins no range behind its end.
	part := fromBackups(t, newSeriesLike(s).Freeze())
	_, origin := newer.Record()
	newer.Pieces(func(p *record) bool {
		p.Origin = origin
		if err := repeated(func() (bool, error) { return part.MergeNumbers(p) }); err != nil || part.Verify() != nil {
			t.Errorf("from %d on: %v, %v", p.GetFirst(), err, part.Verify())
		}
		return true
	})
}

// newSeriesLike is a series without numbers that began as another one.
func newSeriesLike(s *series.Series) *series.Series {
	fresh, err := series.NewFromBackup(backupOf(s.Freeze()))
	if err != nil {
		panic(err)
	}
	return fresh
}

// TestAllotmentsOfTwoClusters differ, if a number would be another one.
func TestAllotmentsOfTwoClusters(t *testing.T) {
	for name, change := range map[string]func(here, there *series.Series){
		"a range ended there": func(here, there *series.Series) {
			mustTake(t, here, 1, on(today, "c"))
			mustTake(t, there, 1, on(today+1, "c"))
		},
		"a range ended here": func(here, there *series.Series) {
			mustTake(t, here, 1, on(today+1, "c"))
			mustTake(t, there, 1, on(today, "c"))
		},
		"other ranges": func(here, there *series.Series) {
			allotted(t, here, rangeOf(51, 52))
			allotted(t, there, rangeOf(51, 53))
		},
		"a range that was taken back gave numbers": func(here, there *series.Series) {
			if err := here.Allot(1, &raftlogv1.SeriesAllot{Allotment: rangeOf(31, 40), Withdraw: true}); err != nil {
				t.Fatal(err)
			}
			mustTake(t, there, 1, on(today+1, "c"))
		},
		"numbers of a range that is not there": func(here, there *series.Series) {
			allotted(t, there, rangeOf(51, 52), rangeOf(61, 62))
			allotted(t, here, rangeOf(45, 46))
			takeMany(t, here, "x", 19)
		},
	} {
		here := newSeries(t, series.Definition{Format: "{number}"})
		allotted(t, here, rangeUntil(11, 20, today), rangeOf(31, 40))
		mustTake(t, here, 1, on(today, "a", "b"))
		there := restored(t, here.Freeze())
		change(here, there)
		hash := here.Hash()
		if err := merged(here, there.Freeze()); kind(err) != "differs" || here.Hash() != hash {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPiecesOfAScopeHaveTheSameAllotments.
func TestPiecesOfAScopeHaveTheSameAllotments(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	allotted(t, s, rangeOf(1001, 2000))
	takeMany(t, s, "a", 300)
	other := newSeriesLike(s)
	if err := other.Resume(1, nil, false); err != nil {
		t.Fatal(err)
	}
	var failed error
	s.Freeze().Pieces(func(p *record) bool {
		if p.GetFirst() > 1 {
			p.Allotments[0].Note = "another"
		}
		failed = other.PutNumbers(p)
		return failed == nil
	})
	if wrongField(failed) != "allotments" {
		t.Error(failed)
	}
}

// TestTheFullestScopeOfAllotments: of those that give numbers today, and a scope that has none is full.
func TestTheFullestScopeOfAllotments(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	allotted(t, s, rangeUntil(11, 14, today), rangeOf(31, 36))
	used := func(day format.Date) float64 {
		share, _ := s.Fullest(day, 0, 10, 0)
		return share
	}
	takeMany(t, s, "a", 3)
	if today, tomorrow := used(today), used(today+1); math.Abs(today-0.3) > 1e-9 || tomorrow > 1e-3 {
		t.Errorf("today %v, tomorrow %v", today, tomorrow)
	}
	takeMany(t, s, "b", 7)
	if got := used(today); got != 1 {
		t.Errorf("%v is used of nothing", got)
	}
}
