package series_test

import (
	"strings"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// TestReconcileRefuses what cannot be said of numbers, and changes nothing.
func TestReconcileRefuses(t *testing.T) {
	s := newSeries(t, series.Definition{OnRelease: series.ReleaseReuses})
	mustTake(t, s, 1, request("a", "b", "c"))
	s.Suspend()
	scope := []string{"2026", "BERLIN"}
	many := make([]*raftlogv1.SeriesKey, series.MaxKeys+1)
	for i := range many {
		many[i] = &raftlogv1.SeriesKey{Number: int64(i + 1)}
	}
	for want, tt := range map[string]struct {
		scope  []string
		books  []*raftlogv1.SeriesKey
		reason string
	}{
		"numbers are not 1 to 1000":                     {scope: scope},
		"numbers are not 1 to 1000 ":                    {scope: scope, books: many},
		"numbers have one twice":                        {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}, {Number: 1, Key: "a"}}},
		"numbers have one that the scope does not have": {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}, {Number: 4}}},
		"numbers have one that the scope does not":      {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 0}}},
		"keys has a key twice": {
			scope: scope,
			books: []*raftlogv1.SeriesKey{{Number: 1, Key: "a"}, {Number: 2, Key: "a"}},
		},
		"keys has a key of more than 128 bytes": {
			scope: scope,
			books: []*raftlogv1.SeriesKey{{Number: 1, Key: strings.Repeat("a", 129)}},
		},
		"reason is not of 1 to 128 bytes": {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}}, reason: "to\nrn"},
		"2027 BERLIN has no numbers":      {scope: []string{"2027", "BERLIN"}, books: []*raftlogv1.SeriesKey{{Number: 1}}},
	} {
		hash := s.Hash()
		if _, err := s.Reconcile(1, tt.scope, tt.books, tt.reason); err == nil ||
			!strings.Contains(err.Error(), strings.TrimSpace(want)) || s.Hash() != hash {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
