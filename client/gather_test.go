package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

var orders = sourceKey{name: "orders"}

// departure is a call: when, since the rig was made, and for how many values.
type departure struct {
	at time.Duration
	n  int
}

// rig is shares of an identity whose last value is last. A call takes its values at once, and
// its answer arrives after a round.
type rig struct {
	*shares
	t       *testing.T
	round   func() time.Duration
	made    time.Time
	callers sync.WaitGroup

	counter sync.Mutex
	last    int64
	calls   []departure
}

// sharing runs a test in virtual time. In the end no caller waits, and nothing is kept.
func sharing(t *testing.T, round time.Duration, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, round: func() time.Duration { return round }, made: time.Now()}
		r.shares = &shares{
			take: r.take, newest: func(string) uint64 { return 1 },
			start:       func(f func()) error { r.callers.Go(f); return nil },
			traceparent: Config{}.traceparent, limit: 10 * time.Second, life: t.Context(), open: map[sourceKey]*share{},
		}
		test(r)
		r.callers.Wait()
		time.Sleep(gatherMost)
		synctest.Wait()
		if len(r.open) != 0 {
			t.Error("something is left")
		}
	})
}

func (r *rig) take(_ context.Context, _ sourceKey, n int, _ string) ([]ValueBlock, error) {
	r.counter.Lock()
	first := r.last + 1
	r.last += int64(n)
	r.calls = append(r.calls, departure{time.Since(r.made), n})
	r.counter.Unlock()
	time.Sleep(r.round())
	return []ValueBlock{{First: first, Last: first + int64(n) - 1}}, nil
}

func (r *rig) next(ctx context.Context) (int64, error) {
	return r.shares.next(ctx, orders, func(ctx context.Context) (int64, error) {
		values, err := r.take(ctx, orders, 1, "")
		return values[0].First, err
	})
}

// call has n callers each make a call after every pause.
func (r *rig) call(n int, pauses ...time.Duration) {
	for range n {
		r.callers.Go(func() {
			for _, pause := range pauses {
				time.Sleep(pause)
				if _, err := r.next(r.t.Context()); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
}

// gathering returns when 9 callers were answered and one of them waits for the others.
func (r *rig) gathering(ctx context.Context) chan error {
	r.call(1, 0)
	r.call(8, ms)
	ended := make(chan error, 1)
	r.callers.Go(func() {
		time.Sleep(ms)
		_, first := r.next(r.t.Context())
		_, err := r.next(ctx)
		ended <- errors.Join(first, err)
	})
	time.Sleep(19 * ms)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.open[orders]; h == nil || h.gather == nil || len(h.waiting) != 1 {
		r.t.Fatal("no caller waits for others")
	}
	return ended
}

// TestWhenACallDeparts has the rule in numbers, for calls of 8 ms if nothing else is said.
func TestWhenACallDeparts(t *testing.T) {
	crowd := []departure{{0, 1}, {10 * ms, 9}} // Answered at 18 ms.
	for name, test := range map[string]struct {
		round time.Duration
		calls func(r *rig)
		want  []departure
	}{
		"a lone caller's, at once": {calls: func(r *rig) {
			r.call(1, 0, 0, ms)
		}, want: []departure{{0, 1}, {8 * ms, 1}, {17 * ms, 1}}},
		"two callers' first together, when the first is back": {calls: func(r *rig) {
			r.call(1, 0, ms)
			r.call(1, ms)
		}, want: []departure{{0, 1}, {9 * ms, 2}}},
		"the second caller's, if the first does not come back in a quarter of its call's time": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(1, ms)
		}, want: []departure{{0, 1}, {10 * ms, 1}}},
		"the next block's, when all are back": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(9, ms, ms, 0)
		}, want: append(crowd, departure{19 * ms, 9}, departure{27 * ms, 9})},
		"when as many others are there": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(9, ms)
			r.call(9, 19*ms)
		}, want: append(crowd, departure{19 * ms, 9})},
		"when those who waited meanwhile are joined by all that were answered": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(9, ms, ms)
			r.call(5, 12*ms)
		}, want: append(crowd, departure{19 * ms, 14})},
		"after a quarter of the call's time, if one stays away": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(1, ms)
			r.call(8, ms, ms)
		}, want: append(crowd, departure{20 * ms, 8})},
		"after 8 ms at most": {round: time.Second, calls: func(r *rig) {
			r.call(1, 0)
			r.call(9, ms)
		}, want: []departure{{0, 1}, {1008 * ms, 9}}},
		"at once again, if all stay away for longer": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(8, ms)
			r.call(1, ms, 3*ms)
		}, want: append(crowd, departure{21 * ms, 1})},
		"soon at once, if callers work for longer than that between two ids": {calls: func(r *rig) {
			r.call(1, 0, 3*ms, 3*ms, 3*ms, 3*ms)
			r.call(1, ms, 3*ms, 3*ms, 3*ms, 3*ms)
		}, want: []departure{
			{0, 1}, {10 * ms, 1}, {20 * ms, 1}, {28 * ms, 1}, {38 * ms, 1}, // After two in vain one is left out,
			{46 * ms, 1}, {54 * ms, 1}, {62 * ms, 1}, {72 * ms, 1}, {80 * ms, 1}, // and three after the third.
		}},
		"at once, with more than one call takes": {calls: func(r *rig) {
			r.call(1, 0)
			r.call(maxShare+1, ms)
		}, want: []departure{{0, 1}, {8 * ms, maxShare}, {18 * ms, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			sharing(t, max(test.round, 8*ms), func(r *rig) {
				test.calls(r)
				r.callers.Wait()
				if !slices.Equal(r.calls, test.want) {
					t.Errorf("calls at %v, want %v", r.calls, test.want)
				}
			})
		})
	}
}

// TestACallerThatLeavesWhileItGathers takes nothing, and no call is made for it.
func TestACallerThatLeavesWhileItGathers(t *testing.T) {
	sharing(t, 8*ms, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		ended := r.gathering(ctx)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) || time.Since(r.made) != 19*ms {
			t.Errorf("%v after %v", err, time.Since(r.made))
		}
		r.callers.Wait()
		if len(r.calls) != 2 {
			t.Errorf("calls at %v", r.calls)
		}
	})
}

// TestCloseWhileItGathers: the callers end within the bound of the wait.
func TestCloseWhileItGathers(t *testing.T) {
	sharing(t, 8*ms, func(r *rig) {
		ended := r.gathering(r.t.Context())
		r.mu.Lock()
		r.start = func(func()) error { return closedError("the client is closed") }
		r.mu.Unlock()
		if err := <-ended; !errors.Is(err, ErrClosed) || time.Since(r.made) != 20*ms {
			t.Errorf("%v after %v", err, time.Since(r.made))
		}
	})
}

// TestAValueIsNewerThanItsCall: no value is lower than a value taken before the call began, by
// this or another client, in whatever order callers arrive and leave.
func TestAValueIsNewerThanItsCall(t *testing.T) {
	sharing(t, 0, func(r *rig) {
		r.round = func() time.Duration { return rand.N(20 * ms) }
		for range 20 {
			r.callers.Go(func() {
				for range 200 {
					time.Sleep(rand.N(rand.N(20*ms) + 1))
					r.counter.Lock()
					r.last++ // Another client's.
					before := r.last
					r.counter.Unlock()
					ctx, cancel := context.WithTimeout(r.t.Context(), 5*ms+rand.N(60*ms))
					value, err := r.next(ctx)
					cancel()
					if err == nil && value <= before {
						t.Errorf("%d after %d", value, before)
					}
				}
			})
		}
	})
}

// TestSharedValueAtTheDeadline: a value that has arrived belongs to the caller, even if its time
// has just ended.
func TestSharedValueAtTheDeadline(t *testing.T) {
	sharing(t, 8*ms, func(r *rig) {
		r.call(1, 0)
		synctest.Wait()
		ctx, cancel := context.WithCancel(r.t.Context())
		ended, value := make(chan error), int64(0)
		go func() {
			v, err := r.next(ctx)
			value = v
			ended <- err
		}()
		synctest.Wait()
		r.mu.Lock() // The caller needs it to leave.
		cancel()
		r.board(orders, r.open[orders]).hand([]ValueBlock{{First: 7, Last: 7}})
		r.mu.Unlock()
		if err := <-ended; err != nil || value != 7 {
			t.Errorf("the value was dropped: %d, %v", value, err)
		}
	})
}

// TestCloseAndTheDeadline: of more callers than one call takes, each ends when the client is
// closed, even if its time ends at the same moment.
func TestCloseAndTheDeadline(t *testing.T) {
	sharing(t, 8*ms, func(r *rig) {
		r.mu.Lock()
		r.start = func(func()) error { return closedError("the client is closed") }
		r.mu.Unlock()
		r.enter(r.t.Context(), orders)
		tickets := make([]*ticket, maxShare+1)
		for i := range tickets {
			tickets[i] = r.enter(r.t.Context(), orders)
		}
		r.leave(orders, 1, 8*ms)
		ctx, cancel := context.WithCancel(r.t.Context())
		cancel()
		for i, ticket := range tickets {
			if err := r.abandon(ctx, orders, ticket); err != nil || !errors.Is(ticket.err, ErrClosed) {
				t.Fatalf("caller %d: %v, %v", i, err, ticket.err)
			}
		}
	})
}
