package generator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client/generator"
)

// Time in this file is that of synctest: it moves when all goroutines wait, so
// measured times are exact.

// slow is a source's delay that ends with its context.
func slow(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func always(size int64) func() int64 { return func() int64 { return size } }

func mustNext(t *testing.T, g *generator.Generator) int64 {
	t.Helper()
	n, err := g.Next(t.Context())
	if err != nil {
		t.Errorf("Next: %v", err)
	}
	return n.Value()
}

// TestSteadyCallerNeverWaits: a caller that takes a number each millisecond waits for
// its first range only, though each range takes the source a quarter of the time that
// the one before lasts.
func TestSteadyCallerNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(100), before: slow(25 * time.Millisecond)}
		g := newGenerator(t, m, generator.Config{})
		mustNext(t, g)
		begin := time.Now()
		const numbers = 10_000
		for range numbers {
			mustNext(t, g)
			time.Sleep(time.Millisecond)
		}
		if waited := time.Since(begin) - numbers*time.Millisecond; waited != 0 {
			t.Errorf("the caller waited for %v", waited)
		}
		closeNow(t, g)
		if m.counter.Max != numbers+1 {
			t.Errorf("Max is %d after %d numbers", m.counter.Max, numbers+1)
		}
	})
}

// TestPrefetchAtHalf: the next range is asked for when half of the current one is
// taken, not before, and once.
func TestPrefetchAtHalf(t *testing.T) {
	for _, tt := range []struct{ size, half int64 }{{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {100, 50}} {
		synctest.Test(t, func(t *testing.T) {
			m := &model{size: always(tt.size)}
			g := newGenerator(t, m, generator.Config{})
			for n := range tt.size {
				mustNext(t, g)
				synctest.Wait()
				want := 1
				if n+1 >= tt.half {
					want = 2
				}
				if len(m.ranges) != want {
					t.Errorf("size %d: %d ranges after %d numbers, want %d", tt.size, len(m.ranges), n+1, want)
				}
			}
			closeNow(t, g)
		})
	}
}

// TestPrefetchByMany: a call that takes many numbers at once has the next range
// fetched when it passes the half, from the current range as from the one ahead.
func TestPrefetchByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(100)}
		g := newGenerator(t, m, generator.Config{})
		for _, step := range []struct{ count, ranges int }{{49, 1}, {2, 2}, {49, 2}, {30, 2}, {40, 3}, {30, 3}, {60, 4}} {
			if _, err := g.NextIDs(t.Context(), step.count); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(m.ranges) != step.ranges {
				t.Errorf("%d ranges after %+v", len(m.ranges), step)
			}
		}
		closeNow(t, g)
	})
}

// TestQueueIsFair: callers get numbers in the order in which they came.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(3), before: slow(time.Second)}
		g := newGenerator(t, m, generator.Config{})
		got := make([]int64, 20)
		want := make([]int64, len(got))
		var wg sync.WaitGroup
		for i := range got {
			want[i] = int64(i + 1)
			wg.Go(func() { got[i] = mustNext(t, g) })
			synctest.Wait()
		}
		wg.Wait()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("numbers in order of arrival, -want +got:\n%s", diff)
		}
		closeNow(t, g)
	})
}

// TestLeavingTheQueue: a caller whose context ends gets no number, and the one that
// it would have got goes to the next.
func TestLeavingTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{before: slow(time.Second)}
		g := newGenerator(t, m, generator.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v", err)
		}
		if took := time.Since(begin); took != 300*time.Millisecond {
			t.Errorf("Next took %v", took)
		}
		if n := mustNext(t, g); n != 1 || m.calls != 1 {
			t.Errorf("the next caller got %d after %d calls", n, m.calls)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the next caller waited for %v", took)
		}
		closeNow(t, g)
	})
}

// TestErrorIsNotKept: every caller that waits for a failed attempt gets its error, and
// the next call tries again at once.
func TestErrorIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		m := &model{before: func(ctx context.Context) error {
			return errors.Join(slow(time.Second)(ctx), down)
		}}
		g := newGenerator(t, m, generator.Config{})
		for round := range 3 {
			var ts takers
			ts.start(t.Context(), g, 10, 1)
			ts.wg.Wait()
			if len(ts.errs) != 10 || !errors.Is(ts.errs[0], down) || m.calls != round+1 {
				t.Errorf("round %d: %d calls, errors %v", round, m.calls, ts.errs)
			}
		}
		m.before = nil
		if n := mustNext(t, g); n != 1 {
			t.Errorf("the number is %d", n)
		}
		closeNow(t, g)
	})
}

// TestPrefetchBacksOff: while the source fails, the background tries again after
// pauses that grow up to a limit; callers notice nothing as long as there are numbers.
// A caller that finds no number asks at once.
func TestPrefetchBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		m := &model{size: always(4)}
		g := newGenerator(t, m, generator.Config{})
		mustNext(t, g)
		synctest.Wait()
		var tries []time.Time
		m.before = func(context.Context) error {
			tries = append(tries, time.Now())
			return down
		}
		mustNext(t, g) // the half
		time.Sleep(time.Minute)
		synctest.Wait()
		limit := 100 * time.Millisecond
		for i := 1; i < len(tries); i++ {
			if pause := tries[i].Sub(tries[i-1]); pause < limit/2 || pause > limit {
				t.Errorf("pause %d is %v, want %v at most and half of it at least", i, pause, limit)
			}
			limit = min(2*limit, 10*time.Second)
		}
		if len(tries) < 12 || len(tries) > 20 {
			t.Errorf("%d tries in a minute", len(tries))
		}
		mustNext(t, g)
		mustNext(t, g)
		calls := len(tries)
		if _, err := g.Next(t.Context()); !errors.Is(err, down) || len(tries) != calls+1 {
			t.Errorf("a caller without a number: %v after %d tries", err, len(tries)-calls)
		}
		time.Sleep(time.Hour)
		if len(tries) != calls+1 {
			t.Errorf("%d tries while no caller wants a number", len(tries)-calls-1)
		}
		m.before = nil
		if n := mustNext(t, g); n != 5 {
			t.Errorf("the number is %d", n)
		}
		closeNow(t, g)
	})
}

// TestPausesBeginAnew: after an attempt that went well, pauses are short again.
func TestPausesBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(4)}
		g := newGenerator(t, m, generator.Config{})
		mustNext(t, g)
		synctest.Wait()
		m.before = func(context.Context) error { return errors.New("down") }
		mustNext(t, g) // the half
		time.Sleep(time.Minute)
		synctest.Wait()
		m.before = func(context.Context) error {
			if m.calls%2 == 0 {
				return errors.New("down")
			}
			return nil
		}
		m.calls = 0
		if _, err := g.NextIDs(t.Context(), 5); err != nil { // passes the half of the next range
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if len(m.ranges) != 3 {
			t.Errorf("%d ranges after a first pause", len(m.ranges))
		}
		m.before = nil
		closeNow(t, g)
	})
}

// TestCallerEndsTheRest: a caller that finds no number does not wait for the pause
// of the background.
func TestCallerEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(2)}
		g := newGenerator(t, m, generator.Config{})
		down := errors.New("down")
		m.before = func(context.Context) error {
			if m.calls == 1 {
				return nil
			}
			return down
		}
		mustNext(t, g)
		time.Sleep(time.Minute)
		synctest.Wait()
		m.before = nil
		mustNext(t, g)
		begin := time.Now()
		if n := mustNext(t, g); n != 3 || time.Since(begin) != 0 {
			t.Errorf("the caller got %d after %v", n, time.Since(begin))
		}
		closeNow(t, g)
	})
}

// TestTimeout: a source that does not answer fails those who wait, with an error that
// says why, and costs no more than the timeout.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{before: slow(time.Hour)}
		g := newGenerator(t, m, generator.Config{Timeout: 3 * time.Second})
		begin := time.Now()
		_, err := g.Next(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second {
			t.Errorf("Next: %v after %v", err, time.Since(begin))
		}
		want := "generator: no range within 3s: context deadline exceeded"
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		closeNow(t, g)
	})
}

// TestLostAnswerIsAHole: the numbers of a range whose answer was lost are never used.
func TestLostAnswerIsAHole(t *testing.T) {
	lost := errors.New("lost")
	calls := 0
	m := &model{size: always(2), after: func() error {
		calls++
		if calls == 2 || calls == 3 {
			return lost
		}
		return nil
	}}
	g := newGenerator(t, m, generator.Config{})
	var got []int64
	for tries := 0; len(got) < 3 && tries < 10; tries++ {
		if n, err := g.Next(t.Context()); err == nil {
			got = append(got, n.Value())
		}
	}
	if diff := cmp.Diff([]int64{1, 2, 7}, got); diff != "" {
		t.Errorf("numbers, -want +got:\n%s", diff)
	}
	closeNow(t, g)
}
