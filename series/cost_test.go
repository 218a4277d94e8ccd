package series_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/test/cputime"
)

// Each call is applied while nothing else is. So none takes time that grows with the numbers
// that a series has, or that have expired. Processor time is compared, of few and of many.

// grows fails if a call takes much longer on many numbers than on few. A prepared call is
// made once.
func grows(t *testing.T, few, many int, prepare func(count int) (call func())) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := func(count int) time.Duration {
		least := time.Hour
		for range 3 {
			call := prepare(count)
			used := cputime.Thread()
			call()
			least = min(least, cputime.Thread()-used)
		}
		return least
	}
	// A call that takes nothing is as good as one of 50 µs.
	if short, long := least(few), least(many); long > 5*max(short, 50*time.Microsecond) {
		t.Errorf("on %d numbers it took %s of processor time, and on %d %s", many, long, few, short)
	}
}

// expired returns a series of which so many numbers have expired at 2.
func expired(t *testing.T, count int, policy series.OnExpiry) *series.Series {
	t.Helper()
	s := newSeries(t, series.Definition{Format: "{number}", OnExpiry: policy, ExpiresIn: time.Hour})
	fill(t, s, 0, count)
	return s
}

const late = int64(2 * time.Hour)

func TestATakeDoesNotGrowWithWhatHasExpired(t *testing.T) {
	for _, policy := range []series.OnExpiry{series.ExpiryReports, series.ExpiryVoids, series.ExpiryReuses} {
		grows(t, 1_000, 50_000, func(count int) func() {
			s := expired(t, count, policy)
			return func() { mustTake(t, s, late, series.Request{Keys: []string{"late"}, Date: today, Today: today}) }
		})
	}
}

func TestAConfirmDoesNotGrowWithWhatHasExpired(t *testing.T) {
	grows(t, 1_000, 50_000, func(count int) func() {
		s := expired(t, count, series.ExpiryVoids)
		return func() {
			if _, err := s.Confirm(late, []*raftlogv1.SeriesKey{{Key: "invoice-00000007"}}); kind(err) != "state" {
				t.Errorf("a voided number is confirmed: %v", err)
			}
		}
	})
}

func TestARedefinitionDoesNotGrowWithWhatHasExpired(t *testing.T) {
	for policy, stricter := range map[series.OnExpiry]series.OnExpiry{
		series.ExpiryVoids: series.ExpiryReports, series.ExpiryReuses: series.ExpiryVoids,
	} {
		grows(t, 1_000, 50_000, func(count int) func() {
			s := expired(t, count, policy)
			d, version := s.Definition()
			d.OnExpiry = stricter
			return func() {
				if err := s.Redefine(late, d, version); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTooManyOpenDoesNotGrow: the lowest open number is behind many that are final, and the
// lowest of all is taken again each time.
func TestTooManyOpenDoesNotGrow(t *testing.T) {
	grows(t, 1_000, 100_000, func(count int) func() {
		s := newSeries(t, series.Definition{Format: "{number}", OnExpiry: series.ExpiryReuses, MaxOpen: 101})
		mustTake(t, s, 1, series.Request{Keys: []string{"x"}, Date: today, Today: today, ExpiresIn: time.Hour})
		for i := 0; i < count; i += 100 {
			fill(t, s, i, i+100)
			for n := i; n < i+100; n++ {
				if _, err := s.Confirm(1, []*raftlogv1.SeriesKey{{Key: fmt.Sprintf("invoice-%08d", n)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(t, s, count, count+100)
		mustTake(t, s, late, series.Request{Keys: []string{"y"}, Date: today, Today: today, ExpiresIn: time.Minute})
		return func() {
			_, err := s.TakeFor(late+int64(time.Minute), series.Request{Keys: []string{"a", "b"}, Date: today, Today: today})
			if kind(err) != "too many open" {
				t.Errorf("taken: %v", err)
			}
		}
	})
}

// TestFreezingDoesNotGrow with scopes or numbers.
func TestFreezingDoesNotGrow(t *testing.T) {
	grows(t, 100, 20_000, func(count int) func() {
		s := newSeries(t, series.Definition{Format: "{branch}-{number}"})
		for i := range count {
			mustTake(t, s, 1, series.Request{Keys: []string{fmt.Sprint(i)}, Values: []string{fmt.Sprint(i)}, Date: today, Today: today})
		}
		return func() { s.Freeze() }
	})
	grows(t, 1_000, 50_000, func(count int) func() {
		s := newSeries(t, series.Definition{Format: "{number}"})
		fill(t, s, 0, count)
		return func() { s.Freeze() }
	})
}
