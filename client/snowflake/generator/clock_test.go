package generator

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/snowflake"
)

// always leases the same window, and notes the clocks that its holder says.
type always struct {
	lease Lease
	said  chan time.Time
}

func (a *always) Acquire(context.Context, time.Time) (Lease, error) { return a.lease, nil }

func (a *always) Renew(_ context.Context, _ Lease, now time.Time) (int64, error) {
	a.said <- now
	return 0, nil
}

func (a *always) Release(context.Context, Lease, int64) error { return nil }

// TestAMachineThatSlept: its monotonic clock stood still, so the next renewal takes the wall clock. One
// that was set back changes nothing. It runs on the real clock: synctest has no monotonic one.
func TestAMachineThatSlept(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, -time.Hour: 0} {
		l := snowflake.Layouts["twitter"]
		now := l.At(time.Now().UnixMilli())
		source := &always{Lease{Layout: l, From: now - 10_000_000, Until: now + 9_000_000}, make(chan time.Time, 10)}
		g := New(source, 0)
		var shift atomic.Int64
		g.wall = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
		if err := g.lease(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		shift.Store(int64(set))
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(<-source.said).Round(time.Minute); ahead != want {
			t.Errorf("set by %s, the holder says a clock that is %s ahead", set, ahead)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestNoRenewalBeginsAfterClose: a caller that has its id already would begin one.
func TestNoRenewalBeginsAfterClose(t *testing.T) {
	l := snowflake.Layouts["twitter"]
	now := l.At(time.Now().UnixMilli())
	source := &always{Lease{Layout: l, From: now - 10_000_000, Until: now + 9_000_000}, make(chan time.Time, 10)}
	g := New(source, 0)
	if err := g.lease(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.renew(g.held.Load())
	if len(g.renewing) > 0 || len(source.said) > 0 {
		t.Error("a renewal began")
	}
}
