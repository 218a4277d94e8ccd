package identity_test

import (
	"errors"
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/identity"
)

// claims returns the argument of Next for these claimed values, ascending.
func claims(values ...int64) func(int64) iter.Seq[int64] {
	return func(from int64) iter.Seq[int64] {
		i, _ := slices.BinarySearch(values, from)
		return slices.Values(values[i:])
	}
}

// everySecond claims the even values from 2 to last.
func everySecond(last int64) func(int64) iter.Seq[int64] {
	var values []int64
	for n := int64(2); n <= last; n += 2 {
		values = append(values, n)
	}
	return claims(values...)
}

func TestNext(t *testing.T) {
	const end = math.MaxInt64
	for _, c := range []struct {
		name    string
		counter identity.Counter
		count   int64
		claimed func(int64) iter.Seq[int64]
		want    []identity.Block
	}{
		{"the first value", identity.Counter{}, 1, nil, []identity.Block{{1, 1}}},
		{"a block", identity.Counter{Last: 7}, 100, nil, []identity.Block{{8, 107}}},
		{"the greatest block", identity.Counter{}, identity.MaxCount, nil, []identity.Block{{1, identity.MaxCount}}},
		{"a hidden identity goes on above", identity.Counter{Last: 7, Hidden: true}, 1, nil, []identity.Block{{8, 8}}},
		{"below 0", identity.Counter{Last: -10}, 5, nil, []identity.Block{{-9, -5}}},
		{"across 0", identity.Counter{Last: -2}, 3, nil, []identity.Block{{-1, 1}}},
		{"from the very bottom", identity.Counter{Last: math.MinInt64}, 2, nil, []identity.Block{{math.MinInt64 + 1, math.MinInt64 + 2}}},
		{
			"a gap of more than 2^63 values",
			identity.Counter{Last: math.MinInt64},
			2, claims(math.MaxInt64),
			[]identity.Block{{math.MinInt64 + 1, math.MinInt64 + 2}},
		},
		{"the last value", identity.Counter{Last: end - 1}, 1, nil, []identity.Block{{end, end}}},
		{"the last values", identity.Counter{Last: end - 10}, 10, nil, []identity.Block{{end - 9, end}}},
		{"no claims", identity.Counter{}, 3, claims(), []identity.Block{{1, 3}}},
		{"claims below", identity.Counter{Last: 7}, 3, claims(1, 2, 7), []identity.Block{{8, 10}}},
		{"claims above", identity.Counter{Last: 7}, 3, claims(11, 12), []identity.Block{{8, 10}}},
		{"one value claimed", identity.Counter{}, 1, claims(1), []identity.Block{{2, 2}}},
		{"many values claimed", identity.Counter{Last: 4}, 1, claims(5, 6, 7, 8), []identity.Block{{9, 9}}},
		{"a claim within", identity.Counter{}, 4, claims(3), []identity.Block{{1, 2}, {4, 5}}},
		{"claims side by side within", identity.Counter{}, 4, claims(3, 4, 5), []identity.Block{{1, 2}, {6, 7}}},
		{"a claim just after", identity.Counter{}, 2, claims(3), []identity.Block{{1, 2}}},
		{"claims on both sides", identity.Counter{}, 2, claims(1, 3, 5), []identity.Block{{2, 2}, {4, 4}}},
		{"claims around 0", identity.Counter{Last: -2}, 3, claims(-1, 1), []identity.Block{{0, 0}, {2, 3}}},
		{"claims at the end", identity.Counter{Last: end - 4}, 2, claims(end-2, end), []identity.Block{{end - 3, end - 3}, {end - 1, end - 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, got, err := c.counter.Next(c.count, c.claimed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the blocks (-want +got):\n%s", diff)
			}
			if want := (identity.Counter{Last: c.want[len(c.want)-1].Last}); after != want {
				t.Errorf("the counter is %+v, want %+v", after, want)
			}
		})
	}
}

func TestNextRefuses(t *testing.T) {
	const end = math.MaxInt64
	for _, c := range []struct {
		name    string
		last    int64
		count   int64
		claimed func(int64) iter.Seq[int64]
		want    error
	}{
		{"no values", 0, 0, nil, identity.ErrCount},
		{"fewer than no values", 0, -1, nil, identity.ErrCount},
		{"the most negative count", 0, math.MinInt64, nil, identity.ErrCount},
		{"more than the limit", 0, identity.MaxCount + 1, nil, identity.ErrCount},
		{"the greatest count", 0, math.MaxInt64, nil, identity.ErrCount},
		{"nothing left", end, 1, nil, identity.ErrExhausted},
		{"one value too many", end - 9, 10, nil, identity.ErrExhausted},
		{"one value too many, because one is claimed", end - 10, 10, claims(end - 5), identity.ErrExhausted},
		{"the last value is claimed", end - 1, 1, claims(end), identity.ErrExhausted},
		{"all that is left is claimed", end - 3, 1, claims(end-2, end-1, end), identity.ErrExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := identity.Counter{Last: c.last, Hidden: true}
			after, blocks, err := before.Next(c.count, c.claimed)
			if !errors.Is(err, c.want) || blocks != nil || after != before {
				t.Errorf("got %+v, %v, %v, want %v and no change", after, blocks, err, c.want)
			}
		})
	}
}

// A walk that yields too much, such as values below the one it was asked for or the
// same one twice, does no harm.
func TestNextWithAnUntidyWalk(t *testing.T) {
	untidy := func(int64) iter.Seq[int64] { return slices.Values([]int64{1, 5, 7, 7, 6, 9}) }
	_, blocks, err := identity.Counter{Last: 4}.Next(3, untidy)
	want := []identity.Block{{6, 6}, {8, 8}, {10, 10}}
	if diff := cmp.Diff(want, blocks); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Next asks for claims above Last only and stops the walk as soon as it has enough.
func TestNextWalksNoFurtherThanItMust(t *testing.T) {
	var from, walked int64
	claimed := func(first int64) iter.Seq[int64] {
		from = first
		return func(yield func(int64) bool) {
			for n := first + 1; yield(n); n += 2 {
				walked++
			}
		}
	}
	if _, _, err := (identity.Counter{Last: 10}).Next(3, claimed); err != nil {
		t.Fatal(err)
	}
	if from != 11 || walked != 2 {
		t.Errorf("Next asked from %d on and walked past %d claims, want 11 and 2", from, walked)
	}
}

func TestSeed(t *testing.T) {
	value := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		counter  identity.Counter
		value    int64
		force    bool
		expected *int64
		want     identity.Counter
		err      error
	}{
		{"a new identity", identity.Counter{}, 100, false, nil, identity.Counter{Last: 100}, nil},
		{"upwards", identity.Counter{Last: 7}, 100, false, nil, identity.Counter{Last: 100}, nil},
		{"downwards without force", identity.Counter{Last: 7}, 3, false, nil, identity.Counter{Last: 7}, nil},
		{"downwards with force", identity.Counter{Last: 7}, 3, true, nil, identity.Counter{Last: 3}, nil},
		{"to 0 with force", identity.Counter{Last: 7}, 0, true, nil, identity.Counter{}, nil},
		{"below 0 with force", identity.Counter{Last: 7}, math.MinInt64, true, nil, identity.Counter{Last: math.MinInt64}, nil},
		{"below 0 without force", identity.Counter{}, -5, false, nil, identity.Counter{}, nil},
		{"to the end", identity.Counter{}, math.MaxInt64, false, nil, identity.Counter{Last: math.MaxInt64}, nil},
		{"with the expected value", identity.Counter{Last: 7}, 100, false, value(7), identity.Counter{Last: 100}, nil},
		{"with the expected value, but lower", identity.Counter{Last: 7}, 3, false, value(7), identity.Counter{Last: 7}, nil},
		{"by force with the expected value", identity.Counter{Last: 7}, 3, true, value(7), identity.Counter{Last: 3}, nil},
		{"a new identity is expected", identity.Counter{}, 100, false, value(0), identity.Counter{Last: 100}, nil},
		{"with another value", identity.Counter{Last: 7}, 100, false, value(6), identity.Counter{Last: 7}, identity.ErrConflict},
		{"by force with another value", identity.Counter{Last: 7}, 3, true, value(8), identity.Counter{Last: 7}, identity.ErrConflict},
		{"a hidden one is shown", identity.Counter{Last: 7, Hidden: true}, 3, false, nil, identity.Counter{Last: 7}, nil},
		{"a hidden one has its value", identity.Counter{Last: 7, Hidden: true}, 9, false, value(7), identity.Counter{Last: 9}, nil},
		{
			"a hidden one is not new",
			identity.Counter{Last: 7, Hidden: true},
			9, false, value(0),
			identity.Counter{Last: 7, Hidden: true},
			identity.ErrConflict,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.counter.Seed(c.value, c.force, c.expected)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}

// total is how many values the blocks have together.
func total(blocks []identity.Block) int64 {
	var n int64
	for _, b := range blocks {
		n += b.Size()
	}
	return n
}
