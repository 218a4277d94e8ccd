package series_test

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// TestOnlyTheNewestNumberGoesBack, so that dates stay in order: another key gets the last number with
// a date of its own, and one below it is voided. Those above it that went back before do not count,
// and neither do those that go back in the same call.
func TestOnlyTheNewestNumberGoesBack(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}", Order: series.OrderDates, OnRelease: series.ReleaseReusesNewest})
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		mustTake(t, s, 1, of(today-4+format.Date(i), key))
	}
	release := func(keys ...string) (states []series.State) {
		var all []*raftlogv1.SeriesKey
		for _, key := range keys {
			all = append(all, &raftlogv1.SeriesKey{Key: key})
		}
		numbers, err := s.Release(1, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			states = append(states, series.State(n.State))
		}
		return states
	}
	if got := release("b")[0]; got != series.Voided {
		t.Errorf("a number below others is %s", got)
	}
	if got := release("d", "e"); got[0] != series.Released || got[1] != series.Released {
		t.Errorf("the last two are %s", got)
	}
	if got := release("c")[0]; got != series.Released {
		t.Errorf("the last one that is left is %s", got)
	}
	if got := s.At(1).Report(0, 1, 0)[0]; got.LastDate != today-4 || got.Released != 3 {
		t.Errorf("%+v", got)
	}
	s = restored(t, s.Freeze())
	if n := mustTake(t, s, 2, of(today-3, "f"))[0]; n.Number != 3 {
		t.Errorf("the next key got %+v", n)
	}
	if _, err := s.TakeFor(2, of(today-4, "g")); kind(err) != "date back" {
		t.Errorf("a date before that of the number given again: %v", err)
	}
	if n := mustTake(t, s, 2, of(today, "d", "g", "h")); n[0].Number != 4 || n[1].Number != 5 || n[2].Number != 6 {
		t.Errorf("the next keys got %+v", n)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

// TestOnReleaseBecomesNewest only while no number waits in the middle.
func TestOnReleaseBecomesNewest(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
	mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{"a", "b"}})
	if _, err := s.Release(1, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
		t.Fatal(err)
	}
	d, hash := series.Definition{Format: "{number}", OnRelease: series.ReleaseReusesNewest}, s.Hash()
	if err := s.Redefine(1, d, 1); wrongField(err) != "on_release" || s.Hash() != hash {
		t.Errorf("got %v", err)
	}
	mustTake(t, s, 1, series.Request{Date: today, Today: today, Keys: []string{"c"}})
	if err := s.Redefine(1, d, 1); err != nil {
		t.Error(err)
	}
}
