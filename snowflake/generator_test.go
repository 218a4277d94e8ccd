package snowflake_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/client/snowflake/generator"
	"github.com/idnode/idnode/snowflake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a source over a pool, which can be cut off, and whose clock may differ.
type cluster struct {
	mu      sync.Mutex
	pool    *snowflake.Pool
	holder  string
	tokens  uint64
	cutOff  bool
	ahead   time.Duration
	acquire int
	renewed int
}

var errCutOff = errors.New("cut off")

func (c *cluster) Acquire(_ context.Context, now time.Time) (generator.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutOff {
		return generator.Lease{}, errCutOff
	}
	c.tokens++
	c.acquire++
	l, err := c.pool.Acquire(c.holder, c.tokens, snowflake.Request{Holder: now, Leader: time.Now().Add(c.ahead)})
	token := strconv.FormatUint(l.Token, 16)
	return generator.Lease{Layout: c.pool.Layout(), Worker: l.Worker, Token: token, From: l.From, Until: l.Until}, err
}

func (c *cluster) Renew(_ context.Context, l generator.Lease, now time.Time) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cutOff {
		return 0, errCutOff
	}
	c.renewed++
	renewed, err := c.pool.Renew(l.Worker, number(l.Token), snowflake.Request{Holder: now, Leader: time.Now().Add(c.ahead)})
	return renewed.Until, err
}

func (c *cluster) Release(_ context.Context, l generator.Lease, next int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.Release(l.Worker, number(l.Token), next)
}

// newCluster returns a source of a pool with the given layout and window.
func newCluster(t *testing.T, layout snowflake.Layout, window time.Duration) *cluster {
	t.Helper()
	p, err := snowflake.NewPool(layout, window, false)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{pool: p, holder: "test"}
}

func next(t *testing.T, g *generator.Generator) int64 {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func closed(t *testing.T, g *generator.Generator) {
	t.Helper()
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

var twitter = snowflake.Layouts["twitter"]

// TestIdsRiseWithTheClock: without a call for each, and with the time of the clock.
func TestIdsRiseWithTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, small(), time.Minute)
		g := generator.New(c, 0)
		defer closed(t, g)
		before := int64(-1)
		for range 1000 {
			id := next(t, g)
			units, w, _ := small().Split(id)
			if id <= before || w != 0 {
				t.Fatalf("%d after %d, of worker %d", id, before, w)
			}
			if at := time.UnixMilli(small().UnixMilli(units)); time.Until(at).Abs() > 101*time.Millisecond {
				t.Fatalf("the time of the id is %s from now", time.Until(at))
			}
			before = id
			time.Sleep(700 * time.Microsecond)
		}
		if c.acquire != 1 {
			t.Errorf("%d calls", c.acquire)
		}
	})
}

// small has four ids in a unit, and an epoch before the clock of synctest, which begins in 2000.
func small() snowflake.Layout {
	return snowflake.Layout{Epoch: 0, Unit: 1, TimeBits: 45, WorkerBits: 2, SequenceBits: 2}
}

// TestAFullSequenceWaits: what is asked for beyond a unit's ids comes later, at the layout's rate.
func TestAFullSequenceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator.New(newCluster(t, small(), time.Minute), 0)
		defer closed(t, g)
		start := time.Now()
		ids, err := g.NextN(t.Context(), 8000)
		if err != nil || len(ids) != 8000 || !slices.IsSorted(ids) {
			t.Fatalf("%d ids, %v", len(ids), err)
		}
		// 8,000 ids of four a millisecond take two seconds. The window begins a second before now.
		if took := time.Since(start); took < 1800*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("they took %s", took)
		}
	})
}

// TestARenewedWindowGoesOn: for as long as it is used, with one lease.
func TestARenewedWindowGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, small(), time.Minute)
		g := generator.New(c, 0)
		defer closed(t, g)
		for range 600 {
			next(t, g)
			time.Sleep(time.Second)
		}
		if c.acquire != 1 || c.renewed < 19 || c.renewed > 22 {
			t.Errorf("%d leases, %d renewals in ten minutes", c.acquire, c.renewed)
		}
	})
}

// TestACutOffHolderGoesOnToTheEndOfItsWindow, and not for one id longer.
func TestACutOffHolderGoesOnToTheEndOfItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, small(), time.Minute)
		g := generator.New(c, 0)
		defer closed(t, g)
		start := time.Now()
		next(t, g)
		c.mu.Lock()
		c.cutOff = true
		c.mu.Unlock()
		for {
			id, err := g.Next(t.Context())
			if err != nil {
				if !errors.Is(err, errCutOff) || time.Since(start) < 59*time.Second {
					t.Errorf("%v after %s", err, time.Since(start))
				}
				return
			}
			if units, _, _ := small().Split(id); small().UnixMilli(units) >= start.Add(time.Minute).UnixMilli() {
				t.Fatalf("an id after the window, %s after the start", time.Since(start))
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestALateClockWaits for the window's begin, or says by how much it is late.
func TestALateClockWaits(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		early bool
	}{{3 * time.Second, false}, {9 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			source := newCluster(t, small(), time.Minute)
			source.ahead = c.ahead
			g := generator.New(source, 5*time.Second)
			defer closed(t, g)
			start := time.Now()
			_, err := g.Next(t.Context())
			_, early := errors.AsType[*generator.EarlyError](err)
			if c.early != early || !c.early && (err != nil || time.Since(start) < c.ahead-snowflake.Tolerance-150*time.Millisecond) {
				t.Errorf("%s late: %v after %s", c.ahead, err, time.Since(start))
			}
		})
	}
}

// TestTwoGeneratorsOfOneWorker: the next one has the rest of the window, and no id of the first.
func TestTwoGeneratorsOfOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, small(), time.Minute)
		seen := map[int64]bool{}
		for range 50 {
			g := generator.New(c, 0)
			for range 30 {
				id := next(t, g)
				if _, w, _ := small().Split(id); w != 0 || seen[id] {
					t.Fatalf("id %d of worker %d, seen before: %t", id, w, seen[id])
				}
				seen[id] = true
			}
			closed(t, g)
			closed(t, g)
			if _, err := g.Next(t.Context()); !errors.Is(err, generator.ErrClosed) {
				t.Fatalf("a closed generator: %v", err)
			}
		}
	})
}

// TestManyCallersWhileItCloses: nobody has an id that was given back. It runs on the real clock, so
// that the race detector sees it.
func TestManyCallersWhileItCloses(t *testing.T) {
	c := newCluster(t, twitter, time.Minute)
	var mu sync.Mutex
	seen := map[int64]bool{}
	for range 20 {
		g := generator.New(c, 0)
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				var mine []int64
				for {
					id, err := g.Next(context.Background())
					if err != nil {
						break
					}
					mine = append(mine, id)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range mine {
					if seen[id] {
						t.Errorf("%d twice", id)
					}
					seen[id] = true
				}
			})
		}
		time.AfterFunc(time.Millisecond, func() { closed(t, g) })
		callers.Wait()
	}
}

// TestCanceledCallers end, whatever the source does.
func TestCanceledCallers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newCluster(t, twitter, time.Minute)
	g := generator.New(waits{c}, 0)
	defer closed(t, g)
	if _, err := g.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// waits is a source that answers when the caller gives up.
type waits struct{ *cluster }

func (w waits) Acquire(ctx context.Context, _ time.Time) (generator.Lease, error) {
	<-ctx.Done()
	return generator.Lease{}, ctx.Err()
}

func TestCounts(t *testing.T) {
	g := generator.New(newCluster(t, twitter, time.Minute), 0)
	defer closed(t, g)
	for _, n := range []int{-1, 0, generator.MaxCount + 1} {
		if _, err := g.NextN(t.Context(), n); !errors.Is(err, generator.ErrCount) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	p, err := snowflake.NewPool(snowflake.Layout{Epoch: 0, Unit: 1, TimeBits: 42, WorkerBits: 1, SequenceBits: 20}, 0, false)
	if err != nil {
		b.Fatal(err)
	}
	g := generator.New(&cluster{pool: p, holder: "bench"}, 0)
	defer g.Close(context.Background())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTwitter is bounded by the layout: 4,096 ids a millisecond are 244 ns each.
func BenchmarkTwitter(b *testing.B) {
	p, err := snowflake.NewPool(twitter, 0, false)
	if err != nil {
		b.Fatal(err)
	}
	g := generator.New(&cluster{pool: p, holder: "bench"}, 0)
	defer g.Close(context.Background())
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// number is the pool's token of a lease.
func number(token string) uint64 {
	n, err := strconv.ParseUint(token, 16, 64)
	if err != nil {
		panic(err)
	}
	return n
}
