package generator_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/client/generator"
)

// TestThousandCallers: with ranges of a few numbers callers wait, none fails, and no
// number is lost or doubled.
func TestThousandCallers(t *testing.T) {
	const callers, each = 1000, 20
	m := &model{size: func() int64 { return 1 + rand.Int64N(8) }}
	g := newGenerator(t, m, generator.Config{})
	var ts takers
	ts.start(t.Context(), g, callers, each)
	ts.wg.Wait()
	if len(ts.errs) > 0 {
		t.Fatalf("%d callers failed, the first one with %v", len(ts.errs), ts.errs[0])
	}
	closeNow(t, g)
	if len(ts.taken) != callers*each {
		t.Errorf("%d numbers, want %d", len(ts.taken), callers*each)
	}
	m.verifyWhole(t, ts.taken)
}

// TestCloseAmongThousandCallers: Close at the same moment as a thousand callers
// leaves no number that was both handed out and given back, nor one that was neither.
func TestCloseAmongThousandCallers(t *testing.T) {
	for range 10 {
		m := &model{size: func() int64 { return 1 + rand.Int64N(8) }}
		g := newGenerator(t, m, generator.Config{})
		var ts takers
		ts.start(t.Context(), g, 1000, 1<<30)
		ids, err := g.NextIDs(t.Context(), 1+rand.IntN(20))
		ts.add(values(ids), err)
		closeNow(t, g)
		ts.wg.Wait()
		for _, err := range ts.errs {
			if !errors.Is(err, generator.ErrClosed) {
				t.Fatalf("a caller failed with %v", err)
			}
		}
		m.verifyWhole(t, ts.taken)
	}
}

// worker is what one of the goroutines of TestModel does: the sizes of its calls, 0
// for Next, and the calls whose context it ends meanwhile.
type worker struct {
	counts []int
	cancel []bool
}

func drawWorker(t *rapid.T) worker {
	calls := rapid.IntRange(0, 30).Draw(t, "calls")
	count := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 60))
	return worker{
		counts: rapid.SliceOfN(count, calls, calls).Draw(t, "counts"),
		cancel: rapid.SliceOfN(rapid.Bool(), calls, calls).Draw(t, "cancel"),
	}
}

// run makes the worker's calls and returns the numbers that it got.
func (w worker) run(g *generator.Generator, allowed func(error) bool) (numbers []int64, wrong error) {
	for i, count := range w.counts {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		if w.cancel[i] {
			wg.Go(cancel)
		}
		got, err := call(ctx, g, count)
		numbers = append(numbers, got...)
		wg.Wait()
		cancel()
		if err != nil && !allowed(err) {
			return numbers, err
		}
	}
	return numbers, nil
}

func call(ctx context.Context, g *generator.Generator, count int) ([]int64, error) {
	if count == 0 {
		n, err := g.Next(ctx)
		if err != nil {
			return nil, err
		}
		return []int64{n.Value()}, nil
	}
	ids, err := g.NextIDs(ctx, count)
	return values(ids), err
}

// TestModel lets goroutines take numbers while calls of the source fail or lose their
// answers, contexts end and the generator is closed, and accounts for every number.
func TestModel(t *testing.T) {
	errSource := errors.New("source")
	allowed := func(err error) bool {
		return errors.Is(err, errSource) || errors.Is(err, context.Canceled) || errors.Is(err, generator.ErrClosed)
	}
	rapid.Check(t, func(t *rapid.T) {
		// One in so many calls; 0 for none.
		fails := rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "fails")
		loses := rapid.SampledFrom([]int{0, 0, 2, 5}).Draw(t, "loses")
		most := rapid.Int64Range(1, 64).Draw(t, "most")
		m := &model{
			size:   func() int64 { return 1 + rand.Int64N(most) },
			before: func(context.Context) error { return oneIn(fails, errSource) },
			after:  func() error { return oneIn(loses, errSource) },
		}
		first := rapid.Int64Range(0, 100).Draw(t, "first")
		g := newGenerator(t, m, generator.Config{FirstSize: first})
		workers := make([]worker, rapid.IntRange(1, 8).Draw(t, "workers"))
		for i := range workers {
			workers[i] = drawWorker(t)
		}
		early := rapid.Bool().Draw(t, "close early")

		var ts takers
		for _, w := range workers {
			ts.wg.Go(func() { ts.add(w.run(g, allowed)) })
		}
		if !early {
			ts.wg.Wait()
		}
		err := g.Close(context.Background())
		ts.wg.Wait()
		if err != nil && !errors.Is(err, errSource) {
			t.Fatalf("Close: %v", err)
		}
		for _, err := range ts.errs {
			t.Fatalf("a call failed with %v", err)
		}
		if m.lost == 0 && err == nil {
			m.verifyWhole(t, ts.taken)
		} else {
			m.verify(t, ts.taken)
		}
	})
}

// oneIn returns err once in n times, and never for 0.
func oneIn(n int, err error) error {
	if n > 0 && rand.IntN(n) == 0 {
		return err
	}
	return nil
}
