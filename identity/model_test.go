package identity_test

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/identity"
)

// slowNext is the slow and obvious Next: it tries every end, value by value, and
// takes the first for which the runs of free values up to it suffice. A run is used
// whole, so the last one is cut by the end.
func slowNext(last, count int64, taken map[int64]bool) ([]identity.Block, bool) {
	var runs []identity.Block
	for end := last; end < math.MaxInt64; {
		end++
		if taken[end] {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].Last == end-1 {
			runs[n-1].Last = end
		} else {
			runs = append(runs, identity.Block{First: end, Last: end})
		}
		if best := choose(runs); total(best) == count {
			return best, true
		}
	}
	return nil, false
}

// choose returns the last run and the longest of the others, the lower first where
// they are equally long, as many as there may be, in ascending order.
func choose(runs []identity.Block) []identity.Block {
	others := slices.Clone(runs[:len(runs)-1])
	slices.SortStableFunc(others, func(a, b identity.Block) int { return cmp.Compare(b.Size(), a.Size()) })
	chosen := append(others[:min(len(others), identity.MaxPieces-1)], runs[len(runs)-1])
	slices.SortFunc(chosen, func(a, b identity.Block) int { return cmp.Compare(a.First, b.First) })
	return chosen
}

// pattern draws claimed values above last: runs of claims with gaps between them,
// mostly small ones.
func pattern(t *rapid.T, last int64) map[int64]bool {
	taken := map[int64]bool{}
	at := last
	for range rapid.IntRange(0, 150).Draw(t, "claims") {
		gap := rapid.SampledFrom([]int64{1, 1, 2, 2, 2, 3, 4, 5, 9}).Draw(t, "gap")
		if at > math.MaxInt64-gap {
			break
		}
		at += gap
		taken[at] = true
	}
	return taken
}

func TestNextAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.OneOf(
			rapid.Int64Range(-50, 50),
			rapid.Int64Range(math.MaxInt64-400, math.MaxInt64),
		).Draw(t, "last")
		count := rapid.Int64Range(1, 300).Draw(t, "count")
		taken := pattern(t, last)
		before := identity.Counter{Last: last, Hidden: rapid.Bool().Draw(t, "hidden")}

		after, blocks, err := before.Next(count, claims(slices.Sorted(maps.Keys(taken))...))
		want, ok := slowNext(last, count, taken)
		if !ok {
			if !errors.Is(err, identity.ErrExhausted) || blocks != nil || after != before {
				t.Fatalf("got %+v, %v, %v, want ErrExhausted", after, blocks, err)
			}
			var exhausted *identity.ExhaustedError
			if !errors.As(err, &exhausted) {
				t.Fatalf("got %v", err)
			}
			most := exhausted.Most
			if _, fits := slowNext(last, most+1, taken); fits || most >= count {
				t.Fatalf("there is room for %d, and more than %d was called too much", most+1, most)
			}
			if _, fits := slowNext(last, most, taken); most > 0 && !fits {
				t.Fatalf("there is no room for %d", most)
			}
			return
		}
		if err != nil || !slices.Equal(blocks, want) {
			t.Fatalf("got %v, %v, want %v", blocks, err, want)
		}
		if after != (identity.Counter{Last: want[len(want)-1].Last}) {
			t.Fatalf("the counter is %+v after %v", after, want)
		}
	})
}

// machine runs random operations on a counter, with claims that come and go, and
// tracks every value that was ever handed out.
type machine struct {
	counter identity.Counter
	given   map[int64]bool
	taken   map[int64]bool
}

func (x *machine) claimed(from int64) iter.Seq[int64] {
	return claims(slices.Sorted(maps.Keys(x.taken))...)(from)
}

func (x *machine) next(t *rapid.T) {
	count := rapid.Int64Range(0, 120).Draw(t, "count")
	after, blocks, err := x.counter.Next(count, x.claimed)
	if count == 0 {
		if !errors.Is(err, identity.ErrCount) {
			t.Fatalf("a count of 0: %v", err)
		}
		return
	}
	if err != nil || total(blocks) != count || len(blocks) > identity.MaxPieces || after.Hidden {
		t.Fatalf("%d values: %+v, %v, %v", count, after, blocks, err)
	}
	last := x.counter.Last
	for _, b := range blocks {
		if b.First <= last || b.Last < b.First {
			t.Fatalf("%v does not ascend above %d", blocks, x.counter.Last)
		}
		for n := b.First; n <= b.Last; n++ {
			if x.given[n] || x.taken[n] {
				t.Fatalf("%d was given %v, claimed %v", n, x.given[n], x.taken[n])
			}
			x.given[n] = true
		}
		last = b.Last
	}
	if after.Last != last {
		t.Fatalf("the last value is %d, want %d", after.Last, last)
	}
	x.counter = after
}

func (x *machine) claim(t *rapid.T) {
	n := x.counter.Last + rapid.Int64Range(1, 60).Draw(t, "above")
	x.taken[n] = true
}

func (x *machine) release(t *rapid.T) {
	if len(x.taken) > 0 {
		delete(x.taken, rapid.SampledFrom(slices.Sorted(maps.Keys(x.taken))).Draw(t, "claim"))
	}
}

func (x *machine) hide(*rapid.T) { x.counter.Hidden = true }

func (x *machine) seed(t *rapid.T) {
	value := x.counter.Last + rapid.Int64Range(-20, 20).Draw(t, "by")
	var expected *int64
	if rapid.Bool().Draw(t, "expects") {
		n := x.counter.Last + rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "wrong by")
		expected = &n
	}
	after, err := x.counter.Seed(value, false, expected)
	if expected != nil && *expected != x.counter.Last {
		if !errors.Is(err, identity.ErrConflict) || after != x.counter {
			t.Fatalf("got %+v, %v, want ErrConflict", after, err)
		}
		return
	}
	if err != nil || after.Last != max(x.counter.Last, value) || after.Hidden {
		t.Fatalf("seeding %+v with %d gives %+v, %v", x.counter, value, after, err)
	}
	x.counter = after
}

// Without force and without forgetting, no value is given twice, whatever happens.
func TestNoValueIsGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := machine{given: map[int64]bool{}, taken: map[int64]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"next": x.next, "claim": x.claim, "claim too": x.claim, "release": x.release, "hide": x.hide, "seed": x.seed,
		})
	})
}
