package hilo_test

import (
	"math"
	"testing"

	"github.com/idnode/idnode/hilo"
)

// These are ways in which returns went wrong elsewhere, and that are rare in the model's runs:
// TestCounterAgainstTheModel returns ranges below, above and between others, with wrong tokens and
// twice. What comes through a new leader, a restart or a snapshot is the same Counter, so the cases
// need no cluster.

// A return that was repeated by the network arrives after the counter has come back
// to the value it had (A-B-A): an end that matches a later, equal maximum.
func TestLateDuplicateOfAReturn(t *testing.T) {
	c, first := next(t, hilo.Counter{}, 32, 0, 1)
	c = giveBack(t, c, first, 0, 1)
	wantIgnored(t, c, first, 0, 1, true)
	wantIgnored(t, c, hilo.Range{High: first.High}, 0, 0, false)

	c, second := next(t, c, 32, 0, 2)
	if second.High == first.High {
		t.Fatalf("the end of %v names two ranges", second)
	}
	wantIgnored(t, c, first, 0, 1, true)
	wantIgnored(t, c, hilo.Range{High: first.High}, 0, 0, false)

	// Now Max is back at the first range's end, and the duplicate comes again.
	c = giveBack(t, c, second, first.High, 2)
	if c.Max != first.High {
		t.Fatalf("Max is %d, want %d", c.Max, first.High)
	}
	wantIgnored(t, c, first, 0, 1, true)
	wantIgnored(t, c, hilo.Range{High: first.High}, 0, 0, false)

	// And with Max set to it by a client that runs the algorithm itself.
	c, err := giveBack(t, hilo.Counter{Max: 32, Peak: 32, Outstanding: []hilo.Outstanding{{Range: first, Token: 1}}}, first, 10, 1).Set(32, 10)
	if err != nil {
		t.Fatal(err)
	}
	wantIgnored(t, c, first, 0, 1, true)
	wantIgnored(t, c, hilo.Range{High: 32}, 0, 0, false)
}

// A client with a prefetched range gives it back unused, and then the rest of its
// current one.
func TestReturnOfAPrefetchedRange(t *testing.T) {
	c, current := next(t, hilo.Counter{}, 32, 0, 1)
	c, prefetched := next(t, c, 64, 0, 2)
	wantIgnored(t, c, current, 10, 1, true) // Not in this order.
	c = giveBack(t, c, prefetched, prefetched.Low-1, 2)
	c = giveBack(t, c, current, 10, 1)
	if c.Max != 10 || c.Peak != prefetched.High {
		t.Errorf("the counter is %+v", c)
	}
	c, again := next(t, c, 32, 0, 3)
	if again.Low != 11 || again.High != prefetched.High+1 {
		t.Errorf("the range after both came back is %v", again)
	}
	wantIgnored(t, c, prefetched, prefetched.Low-1, 2, true)
}

// The chain is only as long as the state remembers.
func TestReturnOfAForgottenRange(t *testing.T) {
	var c hilo.Counter
	var ranges []hilo.Range
	for token := range uint64(hilo.MaxOutstanding + 1) {
		var r hilo.Range
		c, r = next(t, c, 32, 0, token)
		ranges = append(ranges, r)
	}
	for i := hilo.MaxOutstanding; i > 0; i-- {
		c = giveBack(t, c, ranges[i], ranges[i].Low-1, uint64(i))
	}
	wantIgnored(t, c, ranges[0], 0, 0, true)
	if c.Max != ranges[0].High || c.Outstanding != nil {
		t.Errorf("the counter is %+v", c)
	}
}

// A return at the very end leaves numbers, but no end that was not a range's before:
// nothing wraps and nothing comes twice.
func TestReturnAtTheEnd(t *testing.T) {
	c, r := next(t, hilo.Counter{Max: math.MaxInt64 - 32, Peak: math.MaxInt64 - 32}, 32, 0, 1)
	c = giveBack(t, c, r, r.Low-1, 1)
	if _, _, err := c.Next(1, 0, 2, hilo.Holder{}); err != hilo.ErrExhausted {
		t.Errorf("got %v, want ErrExhausted", err)
	}
	wantIgnored(t, c, r, r.Low-1, 1, true)
}
