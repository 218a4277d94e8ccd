package series_test

import (
	"fmt"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// ofKeys are the numbers of some keys of withManyOpen.
func ofKeys(from, to int) (all []*raftlogv1.SeriesKey) {
	for i := from; i < to; i++ {
		all = append(all, &raftlogv1.SeriesKey{Key: fmt.Sprintf("invoice-%08d", i)})
	}
	return all
}

// withManyOpen is a series with 2,500 numbers, few of which have ended: more than one call forgets.
func withManyOpen(t *testing.T, d series.Definition) *series.Series {
	t.Helper()
	s := newSeries(t, d)
	fill(t, s, 0, 2500)
	if _, err := s.Release(3000, ofKeys(1100, 1300)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirm(3000, ofKeys(2390, 2400)); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, 4000, series.Request{Date: today, Today: today, Keys: []string{"new"}}) // May be another's number.
	return s
}

// newNumber is a record that has numbers which withManyOpen lacks.
func newNumber() *record {
	stored := &raftlogv1.SeriesStored{State: uint32(series.Unknown), Shared: true, Date: int32(today)}
	return &record{
		First: 2501, Origin: &raftlogv1.SeriesOrigin{Version: 1}, Numbers: []*raftlogv1.SeriesStored{stored, stored, stored},
	}
}

var manyOpen = map[string]series.Definition{
	"given again": {Format: "{number}", OnRelease: series.ReleaseReuses, OnExpiry: series.ExpiryReuses, ExpiresIn: time.Hour},
	"voided":      {Format: "{number}", OnRelease: series.ReleaseVoids, OnExpiry: series.ExpiryVoids, ExpiresIn: 3 * time.Microsecond},
	"kept":        {Format: "{number}", OnRelease: series.ReleaseVoids},
}

// TestSuspendedInPortions: a series that a record suspends in several calls, and that is restored from a
// snapshot between any two, ends as one that is suspended at once.
func TestSuspendedInPortions(t *testing.T) {
	for name, d := range manyOpen {
		t.Run(name, func(t *testing.T) {
			s := withManyOpen(t, d)
			want := restored(t, s.Freeze())
			want.Suspend()
			calls := 0
			for more := true; more; calls++ {
				var err error
				if more, err = s.MergeNumbers(newNumber()); err != nil {
					t.Fatal(err)
				}
				if s.Verify() != nil || s.Hash() != fromScratch(s.Freeze()) || !s.Suspended() {
					t.Fatalf("after %d calls: %v, suspended: %t", calls+1, s.Verify(), s.Suspended())
				}
				s = restored(t, s.Freeze())
			}
			if more, err := want.MergeNumbers(newNumber()); more || err != nil {
				t.Fatal(more, err)
			}
			if calls < 2 || dump(s.Freeze()) != dump(want.Freeze()) {
				t.Errorf("after %d calls it is another one", calls)
			}
		})
	}
}

// TestResumedBeforeAllIsForgotten: what was not forgotten is as before, no state goes back, and the next record
// begins anew.
func TestResumedBeforeAllIsForgotten(t *testing.T) {
	for name, d := range manyOpen {
		t.Run(name, func(t *testing.T) {
			s := withManyOpen(t, d)
			before := map[int64]uint32{}
			for at := int64(0); ; {
				numbers, next, err := s.Numbers(nil, 0, at, 1000)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range numbers {
					before[n.GetNumber()] = n.GetState()
				}
				if at = next; at == 0 {
					break
				}
			}
			if more, err := s.MergeNumbers(newNumber()); !more || err != nil {
				t.Fatal(more, err)
			}
			if err := s.Resume(4000, nil, false); err != nil || s.Suspended() {
				t.Fatal(err)
			}
			s = restored(t, s.Freeze())
			unknown := 0
			for number, was := range before {
				numbers, _, err := s.Numbers(nil, 0, number-1, 1)
				if err != nil {
					t.Fatal(err)
				}
				switch is := numbers[0].GetState(); {
				case is == uint32(series.Unknown) && (was == uint32(series.Open) || was == uint32(series.Released)):
					unknown++
				case is != was:
					t.Fatalf("number %d went from %d to %d", number, was, is)
				}
			}
			fresh := mustTake(t, s, 4000, series.Request{Date: today, Today: today, Keys: []string{"newest"}})[0].GetNumber()
			if was := before[fresh]; was == uint32(series.Confirmed) || was == uint32(series.Voided) || unknown > 1000 {
				t.Errorf("number %d, which was %d, is given again; %d are unknown", fresh, was, unknown)
			}
			if more, err := s.MergeNumbers(newNumber()); !more || err != nil {
				t.Error("the series is suspended at once:", err)
			}
		})
	}
}
