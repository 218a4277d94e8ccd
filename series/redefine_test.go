package series_test

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// TestADefinitionThatIsInTheBooks: once a number is confirmed or voided, also by its time, the
// series keeps its texts and is not deleted. A released number is in no book.
func TestADefinitionThatIsInTheBooks(t *testing.T) {
	a := []*raftlogv1.SeriesKey{{Key: "a"}}
	for name, tt := range map[string]struct {
		d   series.Definition
		do  func(*series.Series) error
		why string
	}{
		"open":    {do: func(*series.Series) error { return nil }},
		"overdue": {do: func(s *series.Series) error { return nil }, d: series.Definition{ExpiresIn: 1}},
		"lapsed":  {do: func(s *series.Series) error { return nil }, d: series.Definition{ExpiresIn: 1, OnExpiry: series.ExpiryReuses}},
		"released": {
			do: func(s *series.Series) error { _, err := s.Release(2, a); return err },
			d:  series.Definition{OnRelease: series.ReleaseReuses},
		},
		"voided":    {do: func(s *series.Series) error { _, err := s.Void(2, a, "torn"); return err }, why: "in use"},
		"confirmed": {do: func(s *series.Series) error { _, err := s.Confirm(2, a); return err }, why: "in use"},
		"returned":  {do: func(s *series.Series) error { _, err := s.Release(2, a); return err }, why: "in use"},
		"expired": {
			do: func(s *series.Series) error { return nil },
			d:  series.Definition{ExpiresIn: 1, OnExpiry: series.ExpiryVoids}, why: "in use",
		},
		"suspended": {do: func(s *series.Series) error { s.Suspend(); return nil }, why: "suspended"},
	} {
		s := newSeries(t, tt.d)
		mustTake(t, s, 1, request("a"))
		if err := tt.do(s); err != nil {
			t.Fatal(err)
		}
		hash := s.Hash()
		if err := s.At(2).CheckDelete(1); kind(err) != tt.why {
			t.Errorf("%s: deleted: %v", name, err)
		}
		if err := s.At(2).CheckDelete(2); says(err) != "the definition has version 1, not 2" {
			t.Errorf("%s: an old version is deleted: %v", name, err)
		}
		d, _ := s.Definition()
		d.Format = "X-" + d.Format
		_, err := s.At(2).Preview(d, 1)
		if s.Hash() != hash {
			t.Errorf("%s: a preview changed the series", name)
		}
		if again := s.Redefine(2, d, 1); kind(again) != kind(err) {
			t.Errorf("%s: the preview said %v, and then it was %v", name, err, again)
		}
		if refused := wrongField(err) == "format"; refused != (tt.why != "") {
			t.Errorf("%s: %v", name, err)
		}
		if tt.why != "" && s.Hash() != hash {
			t.Errorf("%s: what was refused changed the series", name)
		}
	}
}

// TestANewFormatIsJudgedAsAWhole: what no series can be, and a begin that is none of it,
// change nothing.
func TestANewFormatIsJudgedAsAWhole(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a"))
	hash := s.Hash()
	d, _ := s.Definition()
	for want, change := range map[string]func(*series.Definition) []*raftlogv1.SeriesBegin{
		"format":   func(d *series.Definition) []*raftlogv1.SeriesBegin { d.Format = "{number"; return nil },
		"max_open": func(d *series.Definition) []*raftlogv1.SeriesBegin { d.Format, d.MaxOpen = "{number}", -1; return nil },
		"begins": func(d *series.Definition) []*raftlogv1.SeriesBegin {
			return []*raftlogv1.SeriesBegin{{Scope: []string{"BERLIN"}, First: 2}}
		},
	} {
		next := d
		begins := change(&next)
		if err := s.Redefine(2, next, 1, begins...); err == nil || s.Hash() != hash {
			t.Errorf("%s: %v", want, err)
		}
	}
}
