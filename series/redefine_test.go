package series_test

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

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
