package series_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
		"numbers are not 1 to 1000":                  {scope: scope},
		"numbers are not 1 to 1000 ":                 {scope: scope, books: many},
		"numbers have one twice":                     {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}, {Number: 1, Key: "a"}}},
		"numbers have one that is none of the scope": {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}, {Number: 4}}},
		"numbers have one that is none of the scop":  {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 0}}},
		"keys has a key twice":                       {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1, Key: "a"}, {Number: 2, Key: "a"}}},
		"keys has a key of more than 128 bytes":      {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1, Key: strings.Repeat("a", 129)}}},
		"reason is not of 1 to 128 bytes":            {scope: scope, books: []*raftlogv1.SeriesKey{{Number: 1}}, reason: "to\nrn"},
		"2027 BERLIN has no numbers":                 {scope: []string{"2027", "BERLIN"}, books: []*raftlogv1.SeriesKey{{Number: 1}}},
	} {
		hash := s.Hash()
		if _, err := s.Reconcile(1, tt.scope, tt.books, tt.reason); err == nil ||
			!strings.Contains(err.Error(), strings.TrimSpace(want)) || s.Hash() != hash {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestWhoKeepsANumber that is open when its series is suspended: a key whose number no other
// key can have got since. A series without final numbers may have been redefined since.
func TestWhoKeepsANumber(t *testing.T) {
	for _, tt := range []struct {
		onRelease series.OnRelease
		onExpiry  series.OnExpiry
		end       string
		keeps     bool
	}{
		{series.ReleaseVoids, series.ExpiryReports, "confirm", true},
		{series.ReleaseVoids, series.ExpiryReports, "void", true},
		{series.ReleaseVoids, series.ExpiryVoids, "confirm", true},
		{series.ReleaseVoids, series.ExpiryVoids, "expire", true},
		{series.ReleaseVoids, series.ExpiryReports, "", false},
		{series.ReleaseVoids, series.ExpiryReports, "expire", false},
		{series.ReleaseVoids, series.ExpiryReuses, "confirm", false},
		{series.ReleaseReuses, series.ExpiryReports, "confirm", false},
	} {
		s := newSeries(t, series.Definition{OnRelease: tt.onRelease, OnExpiry: tt.onExpiry})
		ends := request("ends")
		ends.ExpiresIn = time.Minute
		mustTake(t, s, 1, ends)
		mustTake(t, s, 1, request("stays"))
		var err error
		switch ends := []*raftlogv1.SeriesKey{{Key: "ends"}}; tt.end {
		case "confirm":
			_, err = s.Confirm(1, ends)
		case "void":
			_, err = s.Void(1, ends, "torn")
		case "expire":
			other := request("in another scope")
			other.Values = []string{"ULM"}
			_, err = s.TakeFor(int64(time.Hour), other)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Suspend()
		name := fmt.Sprintf("on release %d, on expiry %d, %s", tt.onRelease, tt.onExpiry, tt.end)
		if n, keeps := s.At(2).WhoHas("stays"); keeps != tt.keeps || keeps && n.State != uint32(series.Unknown) || s.Verify() != nil {
			t.Errorf("%s: %+v, %t, %v", name, n, keeps, s.Verify())
		}
		if err := s.Resume(2, nil, false); err != nil {
			t.Fatal(err)
		}
		want := int64(3)
		if tt.keeps {
			want = 2
		}
		if n := mustTake(t, s, 1<<60, request("stays"))[0]; n.Number != want || n.Overdue {
			t.Errorf("%s: takes %+v again, want %d", name, n, want)
		}
		if _, err := s.Confirm(1<<60, []*raftlogv1.SeriesKey{{Key: "stays", Number: want}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnUnknownNumberThatIsReleased is voided, also where others are given again: it may
// have been on a document.
func TestAnUnknownNumberThatIsReleased(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a", "b"))
	if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
		t.Fatal(err)
	}
	s.Suspend()
	for range 2 {
		n, err := s.Release(2, []*raftlogv1.SeriesKey{{Key: "b"}})
		if err != nil || n[0].State != uint32(series.Voided) || n[0].Reason != series.ReasonReleased {
			t.Errorf("%+v, %v", n, err)
		}
	}
}
