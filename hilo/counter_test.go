package hilo_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/hilo"
)

// next issues a range and fails unless that works.
func next(t *testing.T, c hilo.Counter, size, lastMax int64, token uint64) (hilo.Counter, hilo.Range) {
	t.Helper()
	after, r, err := c.Next(size, lastMax, token, hilo.Holder{Who: "Ann", At: int64(token)})
	if err != nil {
		t.Fatal(err)
	}
	return after, r
}

// giveBack returns a range by its token and fails unless it is accepted.
func giveBack(t *testing.T, c hilo.Counter, r hilo.Range, last int64, token uint64) hilo.Counter {
	t.Helper()
	after, ok := c.Return(r, last, token, true)
	if !ok {
		t.Fatalf("the return of %v with last %d was ignored by %+v", r, last, c)
	}
	return after
}

// wantIgnored fails unless the return changes nothing.
func wantIgnored(t *testing.T, c hilo.Counter, r hilo.Range, last int64, token uint64, checkToken bool) {
	t.Helper()
	after, ok := c.Return(r, last, token, checkToken)
	if ok {
		t.Errorf("the return of %v with last %d was accepted by %+v", r, last, c)
	}
	if diff := cmp.Diff(c, after); diff != "" {
		t.Errorf("an ignored return changed the counter (-before +after):\n%s", diff)
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name          string
		counter       hilo.Counter
		size, lastMax int64
		want          hilo.Range
	}{
		{"the first range", hilo.Counter{}, 32, 0, hilo.Range{Low: 1, High: 32}},
		{"the second range", hilo.Counter{Max: 32, Peak: 32}, 64, 32, hilo.Range{Low: 33, High: 96}},
		{"one number", hilo.Counter{Max: 32, Peak: 32}, 1, 0, hilo.Range{Low: 33, High: 33}},
		{"a last maximum ahead", hilo.Counter{Max: 32, Peak: 32}, 32, 100, hilo.Range{Low: 101, High: 132}},
		{
			"a last maximum as far ahead as may be",
			hilo.Counter{Max: 32, Peak: 32},
			32, 32 + hilo.MaxAhead,
			hilo.Range{Low: 33 + hilo.MaxAhead, High: 64 + hilo.MaxAhead},
		},
		{"a last maximum behind", hilo.Counter{Max: 32, Peak: 32}, 32, 5, hilo.Range{Low: 33, High: 64}},
		{"a negative last maximum", hilo.Counter{Max: 32, Peak: 32}, 32, -1, hilo.Range{Low: 33, High: 64}},
		{
			"the most negative last maximum",
			hilo.Counter{Max: math.MaxInt64 - 32, Peak: math.MaxInt64 - 32},
			32, math.MinInt64,
			hilo.Range{Low: math.MaxInt64 - 31, High: math.MaxInt64},
		},
		{"beyond the peak after a return", hilo.Counter{Max: 10, Peak: 64}, 32, 0, hilo.Range{Low: 11, High: 65}},
		{"far beyond the peak after a return", hilo.Counter{Max: 10, Peak: 41}, 32, 0, hilo.Range{Low: 11, High: 42}},
		{
			"the last number",
			hilo.Counter{Max: math.MaxInt64 - 1, Peak: math.MaxInt64 - 1},
			1, math.MaxInt64 - 1,
			hilo.Range{Low: math.MaxInt64, High: math.MaxInt64},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, got := next(t, c.counter, c.size, c.lastMax, 7)
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			want := hilo.Counter{
				Max: c.want.High, Peak: c.want.High,
				Outstanding: []hilo.Outstanding{{Range: c.want, Token: 7, Holder: hilo.Holder{Who: "Ann", At: 7}}},
			}
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("the counter (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextRefuses(t *testing.T) {
	nearEnd := hilo.Counter{Max: math.MaxInt64 - 31, Peak: math.MaxInt64 - 31}
	for _, c := range []struct {
		name          string
		counter       hilo.Counter
		size, lastMax int64
		want          error
	}{
		{"no numbers", hilo.Counter{}, 0, 0, hilo.ErrSize},
		{"fewer than no numbers", hilo.Counter{}, -1, 0, hilo.ErrSize},
		{"the most negative size", hilo.Counter{}, math.MinInt64, 0, hilo.ErrSize},
		{"more than the cap", hilo.Counter{}, hilo.MaxSize + 1, 0, hilo.ErrSize},
		{"the greatest size", hilo.Counter{Max: 5, Peak: 5}, math.MaxInt64, 0, hilo.ErrSize},
		{"a last maximum too far ahead", hilo.Counter{Max: 32, Peak: 32}, 32, 33 + hilo.MaxAhead, hilo.ErrLastMax},
		{"the greatest last maximum", hilo.Counter{Max: 32, Peak: 32}, 32, math.MaxInt64, hilo.ErrLastMax},
		{"one number too many", nearEnd, 32, 0, hilo.ErrExhausted},
		{
			"one number too many above the last maximum",
			hilo.Counter{Max: math.MaxInt64 - 64, Peak: math.MaxInt64 - 64},
			32,
			math.MaxInt64 - 31, hilo.ErrExhausted,
		},
		{"nothing left", hilo.Counter{Max: math.MaxInt64, Peak: math.MaxInt64}, 1, 0, hilo.ErrExhausted},
		{"nothing left above the last maximum", nearEnd, 1, math.MaxInt64, hilo.ErrExhausted},
		{"every High was a range's once", hilo.Counter{Max: 10, Peak: math.MaxInt64}, 1, 0, hilo.ErrExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, r, err := c.counter.Next(c.size, c.lastMax, 7, hilo.Holder{})
			if !errors.Is(err, c.want) || r != (hilo.Range{}) {
				t.Errorf("got %v and %v, want %v", r, err, c.want)
			}
			if diff := cmp.Diff(c.counter, after); diff != "" {
				t.Errorf("the counter changed (-before +after):\n%s", diff)
			}
		})
	}
}

// The methods leave the receiver alone, and counters that share a slice do not write
// into each other's.
func TestCountersShareNothing(t *testing.T) {
	var c hilo.Counter
	var ranges []hilo.Range
	for token := range uint64(hilo.MaxOutstanding) {
		var r hilo.Range
		c, r = next(t, c, 32, 0, token)
		ranges = append(ranges, r)
	}
	newest := ranges[len(ranges)-1]
	short := giveBack(t, c, newest, newest.Low-1, hilo.MaxOutstanding-1)
	one, _ := next(t, short, 1, 0, 100)
	two, _ := next(t, short, 2, 0, 200)
	for _, v := range []struct {
		counter hilo.Counter
		token   uint64
	}{{c, hilo.MaxOutstanding - 1}, {short, hilo.MaxOutstanding - 2}, {one, 100}, {two, 200}} {
		if got := v.counter.Outstanding[len(v.counter.Outstanding)-1]; got.Token != v.token || got.High != v.counter.Max {
			t.Errorf("the newest range is %+v, want the token %d and the end %d", got, v.token, v.counter.Max)
		}
	}
}
