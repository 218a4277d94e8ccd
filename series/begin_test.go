package series_test

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

var berlin = []string{"2026", "BERLIN"}

// begun returns a series whose scope of request begins at 543.
func begun(t *testing.T) *series.Series {
	t.Helper()
	s, err := series.New(series.Definition{Format: "{branch}-{year}-{number:4}", Reset: format.ResetYear},
		&raftlogv1.SeriesBegin{Scope: berlin, First: 543})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestABeginIsInFrozenCopies, also of a scope that has no numbers yet: in its snapshot, and
// in a backup that is merged. A scope of two begins is of two series.
func TestABeginIsInFrozenCopies(t *testing.T) {
	for _, keys := range [][]string{nil, {"a", "b"}} {
		s := begun(t)
		if len(keys) > 0 {
			mustTake(t, s, 1, request(keys...))
		}
		f := s.Freeze()
		for range 2 { // The same backup again changes nothing.
			merge(t, s, f)
		}
		next := restored(t, f)
		if next.Hash() != s.Hash() || next.Verify() != nil {
			t.Errorf("%v: the restored series has the hash %x, want %x: %v", keys, next.Hash(), s.Hash(), next.Verify())
		}
		if n := mustTake(t, next, 2, request("c"))[0].Number; n != 543+int64(len(keys)) {
			t.Errorf("behind %v: got %d", keys, n)
		}
	}
	s := begun(t)
	mustTake(t, s, 1, request("a"))
	other := mustNew(t)
	mustTake(t, other, 1, request("z"))
	hash := other.Hash()
	if err := merged(other, s.Freeze()); kind(err) != "differs" || other.Hash() != hash {
		t.Errorf("a scope of two begins: %v", err)
	}
	// One without numbers begins where the newer one says.
	merge(t, other, begun(t).Freeze())
	if other.Hash() != hash {
		t.Error("a begin without numbers has changed a scope with some")
	}
	other = mustNew(t, &raftlogv1.SeriesBegin{Scope: berlin, First: 2})
	merge(t, other, s.Freeze())
	if sum := other.At(1).Report(0, 10, 0)[0]; sum.Before != 542 || sum.Last != 543 {
		t.Errorf("merged into %+v", sum)
	}
}

// mustNew returns a series of the format of begun.
func mustNew(t *testing.T, begins ...*raftlogv1.SeriesBegin) *series.Series {
	t.Helper()
	d, _ := begun(t).Definition()
	s, err := series.New(d, begins...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBeginsThatAreRefused change nothing, and say which of them is at fault.
func TestBeginsThatAreRefused(t *testing.T) {
	s := begun(t)
	mustTake(t, s, 1, request("a"))
	d, version := s.Definition()
	if _, err := s.CloseScope(1, berlin); err != nil {
		t.Fatal(err)
	}
	ulm := []string{"2026", "ULM"}
	if err := s.Redefine(1, d, version, &raftlogv1.SeriesBegin{Scope: ulm, First: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CloseScope(1, ulm); err != nil {
		t.Fatal(err)
	}
	paris := &raftlogv1.SeriesBegin{Scope: []string{"2026", "PARIS"}, First: 2}
	for _, tt := range []struct {
		wrong *raftlogv1.SeriesBegin
		why   string
	}{
		{&raftlogv1.SeriesBegin{Scope: []string{"2026", "X"}, First: 10_000}, "have a number that the format cannot show: 2026 X"},
		{&raftlogv1.SeriesBegin{Scope: []string{"2026", "X"}}, "have a number that the format cannot show: 2026 X"},
		{&raftlogv1.SeriesBegin{Scope: []string{"BERLIN"}, First: 2}, "have a scope that is not one of the format: BERLIN"},
		{&raftlogv1.SeriesBegin{First: 2}, "have a scope that is not one of the format: the series"},
		{paris, "have a scope twice: 2026 PARIS"},
		{&raftlogv1.SeriesBegin{Scope: berlin, First: 544}, "have a scope that has numbers: 2026 BERLIN"},
		{&raftlogv1.SeriesBegin{Scope: ulm, First: 8}, "have a scope that is closed: 2026 ULM"},
	} {
		hash := s.Hash()
		err := s.Redefine(2, d, version+1, paris, tt.wrong)
		if wrongField(err) != "begins" || says(err) != "begins "+tt.why || s.Hash() != hash {
			t.Errorf("%+v: %v, want that they %s", tt.wrong, err, tt.why)
		}
	}
	if err := s.Redefine(2, d, version+1, make([]*raftlogv1.SeriesBegin, series.MaxBegins+1)...); kind(err) != "begins are more than 1000" {
		t.Errorf("too many: %v", err)
	}
	// What is so already may be said again.
	if err := s.Redefine(2, d, version+1, []*raftlogv1.SeriesBegin{{Scope: berlin, First: 543}, {Scope: ulm, First: 7}}...); err != nil {
		t.Error(err)
	}
}
