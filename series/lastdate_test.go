package series_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// of returns a request of a date.
func of(date format.Date, keys ...string) series.Request {
	return series.Request{Date: date, DateGiven: true, Today: today, Keys: keys}
}

// TestADateIsAtMostSoFarAhead of the present day: one day where dates have an order, because a
// wrong one ends the scope until somebody voids it. A number that is there keeps its date.
func TestADateIsAtMostSoFarAhead(t *testing.T) {
	for _, tt := range []struct {
		d    series.Definition
		most format.Date
	}{
		{series.Definition{Order: series.OrderDates}, 1},
		{series.Definition{Order: series.OrderOneOpen}, 1},
		{series.Definition{}, 366},
		{series.Definition{MaxAheadDays: 3650, AheadGiven: true}, 3650},
		{series.Definition{AheadGiven: true}, 0},
		{series.Definition{Order: series.OrderDates, AheadGiven: true}, 0},
		{series.Definition{Order: series.OrderDates, MaxAheadDays: 31, AheadGiven: true}, 31},
	} {
		tt.d.Format = "{number}"
		s := newSeries(t, tt.d)
		_, err := s.TakeFor(1, of(today+tt.most+1, "a"))
		want := fmt.Sprintf("date %s is after %s, and today is %s", today+tt.most+1, today+tt.most, today)
		if wrongField(err) != "date" || err.Error() != want {
			t.Errorf("%+v: %v, want that %s", tt.d, err, want)
		}
		first := of(today+tt.most, "a")
		mustTake(t, s, 1, first)
		first.Today -= 4000 // A clock that was set back.
		if n := mustTake(t, s, 1, first)[0]; n.Number != 1 {
			t.Errorf("%+v: the same call again got %+v", tt.d, n)
		}
	}
	for _, days := range []int32{-1, 3651} {
		_, err := series.New(series.Definition{Format: "{number}", MaxAheadDays: days, AheadGiven: true})
		if wrongField(err) != "max_ahead_days" {
			t.Errorf("%d days: %v", days, err)
		}
	}
}

// TestACallersEnd is at least a minute, or a caller could void numbers by their time, and at
// most that of the definition. It is judged for numbers that are new.
func TestACallersEnd(t *testing.T) {
	for _, tt := range []struct {
		defined, least, most time.Duration
		says                 string
	}{
		{0, time.Minute, series.MaxExpiresIn, "is not from "},
		{time.Hour, time.Minute, time.Hour, "is not from 1m0s to 1h0m0s"},
		{time.Second, time.Second, time.Second, "is not 1s, the definition's"},
	} {
		s := newSeries(t, series.Definition{Format: "{number}", ExpiresIn: tt.defined, OnExpiry: series.ExpiryVoids})
		for _, in := range []time.Duration{1, tt.least - 1, tt.most + 1} {
			q := of(today, "a")
			q.ExpiresIn = in
			_, err := s.TakeFor(1, q)
			if wrongField(err) != "expires_in" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v where the definition has %v: %v, want %q", in, tt.defined, err, tt.says)
			}
		}
		for i, in := range []time.Duration{tt.least, tt.most, 0} {
			q := of(today, fmt.Sprint("k", i))
			q.ExpiresIn = in
			mustTake(t, s, 1, q)
		}
		d, version := s.Definition()
		d.ExpiresIn = 2 * time.Second
		if err := s.Redefine(1, d, version); err != nil {
			t.Fatal(err)
		}
		q := of(today, "k0")
		q.ExpiresIn = tt.least
		mustTake(t, s, 2, q)
	}
}

// TestTheLastDateDoesNotGrow: behind many numbers that have expired and are not stored as voided
// yet, it is that of a number in front of them.
func TestTheLastDateDoesNotGrow(t *testing.T) {
	grows(t, 1_000, 100_000, func(count int) func() {
		s := newSeries(t, series.Definition{Format: "{number}", Order: series.OrderDates, OnExpiry: series.ExpiryVoids, ExpiresIn: time.Hour})
		mustTake(t, s, 1, of(today-9, "first"))
		if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: "first"}}); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < count; i += series.MaxKeys {
			q := of(today + 1)
			for n := range series.MaxKeys {
				q.Keys = append(q.Keys, fmt.Sprintf("k%d", i+n))
			}
			mustTake(t, s, 1, q)
		}
		return func() { mustTake(t, s, 1<<50, of(today-9, "next")) }
	})
}
