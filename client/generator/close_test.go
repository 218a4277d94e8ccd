package generator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client/generator"
)

// TestCloseGivesBack: the unused numbers are returned, the range ahead first, and the source
// gets no other call.
func TestCloseGivesBack(t *testing.T) {
	tests := []struct {
		take int
		want []string
		max  int64
	}{
		{0, nil, 0},
		{1, []string{"1-10:1"}, 1},
		{4, []string{"1-10:4"}, 4},
		{5, []string{"11-20:10", "1-10:5"}, 5},
		{9, []string{"11-20:10", "1-10:9"}, 9},
		{10, []string{"11-20:10"}, 10},
		{11, []string{"11-20:11"}, 11},
		{15, []string{"21-30:20", "11-20:15"}, 15},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			m := &model{size: always(10)}
			g := newGenerator(t, m, generator.Config{})
			for range tt.take {
				mustNext(t, g)
				synctest.Wait()
			}
			closeNow(t, g)
			closeNow(t, g) // does nothing
			if diff := cmp.Diff(tt.want, m.returns); diff != "" {
				t.Errorf("returns after %d numbers, -want +got:\n%s", tt.take, diff)
			}
			if m.counter.Max != tt.max || m.ignored != 0 {
				t.Errorf("Max is %d after %d numbers, %d returns did nothing", m.counter.Max, tt.take, m.ignored)
			}
		})
	}
}

// TestClosed: every call fails once Close has begun, also if numbers are left.
func TestClosed(t *testing.T) {
	m := &model{}
	g := newGenerator(t, m, generator.Config{})
	mustNext(t, g)
	closeNow(t, g)
	calls := m.calls
	for range 3 {
		if n, err := g.Next(t.Context()); !errors.Is(err, generator.ErrClosed) || n != (generator.Number{}) {
			t.Errorf("Next: %v, %v", n, err)
		}
		if id, err := g.NextID(t.Context()); !errors.Is(err, generator.ErrClosed) || id != "" {
			t.Errorf("NextID: %q, %v", id, err)
		}
		if ids, err := g.NextIDs(t.Context(), 5); !errors.Is(err, generator.ErrClosed) || len(ids) != 0 {
			t.Errorf("NextIDs: %q, %v", ids, err)
		}
	}
	if m.calls != calls {
		t.Errorf("%d calls of the source after Close", m.calls-calls)
	}
}

// TestCloseAtEveryMoment: eight callers, a source that takes 10 ms, and a Close at
// each millisecond: no number is lost or doubled, and no hole is left.
func TestCloseAtEveryMoment(t *testing.T) {
	for moment := range 100 {
		synctest.Test(t, func(t *testing.T) {
			m := &model{size: always(20), before: slow(10 * time.Millisecond)}
			g := newGenerator(t, m, generator.Config{})
			var ts takers
			for i := range 8 {
				ts.wg.Go(func() {
					for {
						n, err := g.Next(t.Context())
						if err != nil {
							ts.add(nil, err)
							return
						}
						ts.add([]int64{n.Value()}, nil)
						time.Sleep(time.Duration(i) * time.Millisecond)
						if i == 0 {
							time.Sleep(500 * time.Microsecond)
						}
					}
				})
			}
			time.Sleep(time.Duration(moment) * time.Millisecond)
			begin := time.Now()
			closeNow(t, g)
			// The call in flight, and two returns.
			if took := time.Since(begin); took > 30*time.Millisecond {
				t.Errorf("Close took %v", took)
			}
			ts.wg.Wait()
			for _, err := range ts.errs {
				if !errors.Is(err, generator.ErrClosed) {
					t.Errorf("a caller failed with %v", err)
				}
			}
			m.verifyWhole(t, ts.taken)
			if m.ignored != 0 {
				t.Errorf("moment %d: %d returns did nothing", moment, m.ignored)
			}
		})
	}
}

// TestCloseIsBounded: Close ends with its context, or with the timeouts of the calls
// if that has no end, whatever the source is doing, and leaves no goroutine.
func TestCloseIsBounded(t *testing.T) {
	const timeout = 5 * time.Second
	tests := []struct {
		name  string
		take  int
		limit time.Duration // of Close's context, 0 for none
		took  time.Duration
		err   error
	}{
		{"nothing held", 0, time.Second, 0, nil},
		{"returns hang", 1, time.Second, time.Second, context.DeadlineExceeded},
		{"returns hang, no limit", 1, 0, timeout, context.DeadlineExceeded},
		{"fetch hangs", 5, time.Second, time.Second, context.DeadlineExceeded},
		{"fetch and return hang, no limit", 5, 0, 2 * timeout, context.DeadlineExceeded},
		{"a context that has ended", 1, -1, 0, context.DeadlineExceeded},
		{"a fetch, and a context that has ended", 5, -1, 0, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &model{size: always(10)}
				g := newGenerator(t, m, generator.Config{Timeout: timeout})
				for i := range tt.take {
					if i == 1 {
						m.before = slow(time.Hour)
					}
					mustNext(t, g)
					synctest.Wait()
				}
				m.before = slow(time.Hour)
				ctx := t.Context()
				if tt.limit != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				begin := time.Now()
				err := g.Close(ctx)
				if !errors.Is(err, tt.err) || time.Since(begin) != tt.took {
					t.Errorf("Close: %v after %v, want %v after %v", err, time.Since(begin), tt.err, tt.took)
				}
				if again := g.Close(ctx); fmt.Sprint(again) != fmt.Sprint(err) {
					t.Errorf("the second Close: %v, the first: %v", again, err)
				}
			})
		})
	}
}

// TestCloseLeavesNoGoroutine: a source that needs a moment to end its call is waited
// for.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		m := &model{before: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			ended = true
			return ctx.Err()
		}}
		g := newGenerator(t, m, generator.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var ts takers
		ts.start(t.Context(), g, 1, 1)
		synctest.Wait()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !ended {
			t.Errorf("Close: %v, the call of the source has ended: %v", err, ended)
		}
		ts.wg.Wait()
	})
}

// TestCloseWhileResting: Close does not wait for the pause after a failed attempt.
func TestCloseWhileResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(2)}
		m.before = func(context.Context) error {
			if m.calls == 2 {
				return errors.New("down")
			}
			return nil
		}
		g := newGenerator(t, m, generator.Config{})
		mustNext(t, g)
		synctest.Wait()
		begin := time.Now()
		closeNow(t, g)
		if took := time.Since(begin); took != 0 || m.counter.Max != 1 {
			t.Errorf("Close took %v, Max is %d", took, m.counter.Max)
		}
		if m.calls != 3 { // two for ranges, and a return
			t.Errorf("%d calls of the source", m.calls)
		}
	})
}

// TestCloseFailsWaiters: callers that wait learn at once that there will be nothing,
// and the range that then comes is given back.
func TestCloseFailsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{size: always(5), before: slow(time.Second)}
		g := newGenerator(t, m, generator.Config{})
		var ts takers
		begin := time.Now()
		ts.start(t.Context(), g, 10, 1)
		synctest.Wait()
		var second error
		ts.wg.Go(func() {
			time.Sleep(time.Millisecond)
			second = g.Close(t.Context())
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("the second Close returned after %v", took)
			}
		})
		closeNow(t, g)
		ts.wg.Wait()
		if len(ts.errs) != 10 || !errors.Is(ts.errs[0], generator.ErrClosed) || second != nil {
			t.Errorf("errors: %v and %v", ts.errs, second)
		}
		m.verifyWhole(t, nil)
	})
}

// TestSecondCloseIsBounded: a second Close waits for the first until its own context ends.
func TestSecondCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{}
		g := newGenerator(t, m, generator.Config{})
		mustNext(t, g)
		m.before = slow(time.Second)
		go func() { _ = g.Close(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second Close: %v", err)
		}
		closeNow(t, g)
	})
}

// TestCloseGoesOnAfterAnError: a failed return does not keep the other range.
func TestCloseGoesOnAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		m := &model{size: always(10)}
		g := newGenerator(t, m, generator.Config{})
		if _, err := g.NextIDs(t.Context(), 6); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.before = func(context.Context) error {
			if m.calls == 3 {
				return down
			}
			return nil
		}
		if err := g.Close(t.Context()); !errors.Is(err, down) {
			t.Errorf("Close: %v", err)
		}
		if diff := cmp.Diff([]string{"1-10:6"}, m.returns); diff != "" || m.ignored != 1 {
			t.Errorf("returns, %d of which did nothing, -want +got:\n%s", m.ignored, diff)
		}
	})
}
