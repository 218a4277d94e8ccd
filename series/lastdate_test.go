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

// TestAVoidedDateDoesNotBindTheOrder: a wrong date is on no document once its number is voided,
// by its caller or by its time. The largest of the others counts.
func TestAVoidedDateDoesNotBindTheOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		d    series.Definition
		undo func(*series.Series) error
	}{
		"voided": {undo: func(s *series.Series) error {
			_, err := s.Void(2, []*raftlogv1.SeriesKey{{Key: "wrong"}}, "typed 2062")
			return err
		}},
		"released": {undo: func(s *series.Series) error {
			_, err := s.Release(2, []*raftlogv1.SeriesKey{{Key: "wrong"}})
			return err
		}},
		"expired": {undo: func(s *series.Series) error { return nil }, d: series.Definition{OnExpiry: series.ExpiryVoids}},
	} {
		for _, before := range []int{3, 300} { // Without a finder, and with one.
			d := tt.d
			d.Format, d.Order, d.MaxAheadDays, d.AheadGiven, d.ExpiresIn = "{number}", series.OrderDates, 3650, true, time.Minute
			s := newSeries(t, d)
			last := today - 300
			for i := range before {
				last = today - 300 + format.Date(i)
				key := fmt.Sprint("k", i)
				mustTake(t, s, 1, of(last, key))
				if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: key}}); err != nil {
					t.Fatal(err)
				}
			}
			mustTake(t, s, 1, of(today+3650, "wrong"))
			_, err := s.TakeFor(2, of(today, "next"))
			if kind(err) != "date back" || !strings.Contains(err.Error(), "before "+(today+3650).String()) {
				t.Fatalf("%s: the order of dates is broken: %v", name, err)
			}
			if err := tt.undo(s); err != nil {
				t.Fatal(err)
			}
			now := int64(time.Hour)
			for _, same := range []*series.Series{s, restored(t, s.Freeze())} {
				if sum := same.At(now).Report(0, 1, 0)[0]; sum.LastDate != last {
					t.Errorf("%s: the last date is %s, want %s", name, sum.LastDate, last)
				}
				if _, err := same.TakeFor(now, of(last-1, "next")); kind(err) != "date back" {
					t.Errorf("%s: a date before the last of those that are left: %v", name, err)
				}
				if n := mustTake(t, same, now, of(last, "next"))[0]; n.Number != int64(before+2) {
					t.Errorf("%s: got %+v", name, n)
				}
				if err := same.Verify(); err != nil {
					t.Error(err)
				}
			}
		}
	}
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
