package series_test

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// TestTheFullestScope is one of the present period, on whatever page it is. A series whose keys are bounded may have used more of them.
func TestTheFullestScope(t *testing.T) {
	d := series.Definition{Format: "{branch}-{year}-{number:2}", Reset: format.ResetYear}
	var begins []*raftlogv1.SeriesBegin
	for scope, first := range map[[2]string]int64{
		{"2025", "Rome"}: 99, {"2026", "Rome"}: 34, {"2026", "Bonn"}: 67, {"2026", "Oslo"}: 2, {"2027", "Oslo"}: 90,
	} {
		begins = append(begins, &raftlogv1.SeriesBegin{Scope: scope[:], First: first})
	}
	s, err := series.New(d, begins...)
	if err != nil {
		t.Fatal(err)
	}
	fullest := func(year, page int) (share float64) {
		for from, more := 0, true; more; from += page {
			share, more = s.Fullest(format.DateOf(year, 6, 1), from, page, share)
		}
		return share
	}
	for year, want := range map[int]float64{2025: 98, 2026: 66, 2027: 89} {
		for page := 1; page < 7; page++ {
			if got := fullest(year, page) * 99; got < want-0.01 || got > want+0.01 {
				t.Errorf("in %d, in pages of %d, %v of 99 numbers are used, want %v", year, page, got, want)
			}
		}
	}
	if got := fullest(2030, 10); got <= 0 || got > 0.001 {
		t.Errorf("of a year without numbers %v is used, want the share of the scopes", got)
	}
}

// TestTheFullestScopeOfAMaxLength: its numbers end where their texts would be too long.
func TestTheFullestScopeOfAMaxLength(t *testing.T) {
	s, err := series.New(series.Definition{Format: "A-{number}", MaxLength: 4}, &raftlogv1.SeriesBegin{First: 50})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Fullest(format.DateOf(2026, 6, 1), 0, 10, 0); got != 49.0/99 {
		t.Errorf("%v is used, want 49 of 99", got)
	}
}
