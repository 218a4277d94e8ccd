package hilo

import (
	"math"
	"slices"
)

// Range is the numbers from Low to High, both included.
type Range struct {
	Low, High int64
}

// Size returns how many numbers the range has.
func (r Range) Size() int64 { return r.High - r.Low + 1 }

// Holder is who got a range. It means nothing to a counter.
type Holder struct {
	// Who is what the caller of Next makes of it; empty if nothing is known.
	Who string
	// At is when the range was issued, in seconds since 1970.
	At int64
}

// Outstanding is a range that was issued and can still be given back, with the
// random token that only its holder knows.
type Outstanding struct {
	Range
	Token  uint64
	Holder Holder
}

// Counter is what the cluster keeps for one tag. The zero Counter is that of an unused
// tag.
//
// Invariant: 0 ≤ Max ≤ Peak.
//
// Invariant: no caller holds a number above Max.
//
// Invariant: Outstanding is a chain. Each range begins right after the one before
// it ended, and the newest ends at Max.
type Counter struct {
	// Max is the last number that is taken, 0 if none is.
	Max int64
	// Peak is the greatest High that was ever issued, or the greatest Max that was
	// ever set. It never falls.
	Peak int64
	// Outstanding holds the newest ranges that can still be given back, at most
	// MaxOutstanding, the newest last. The slice is immutable: counters share it,
	// and every change makes a new one.
	Outstanding []Outstanding
}

// Next issues the next range of the given size (1 … MaxSize). It begins above Max and
// above lastMax, the greatest number that the caller knows to be taken, which protects it
// from a counter that was lost or set back; a negative lastMax counts as 0.
//
// The range ends above Peak, so that one High names one range permanently. After a return
// it can therefore be larger than the size: large enough to reach one number beyond the
// range that came back.
//
// The errors are ErrSize, ErrLastMax and ErrExhausted; the counter is then
// unchanged.
func (c Counter) Next(size, lastMax int64, token uint64, holder Holder) (Counter, Range, error) {
	if size < 1 || size > MaxSize {
		return c, Range{}, ErrSize
	}
	lastMax = max(lastMax, 0)
	if lastMax-c.Max > MaxAhead {
		return c, Range{}, ErrLastMax
	}
	base := max(c.Max, lastMax)
	if base > math.MaxInt64-size || c.Peak == math.MaxInt64 {
		return c, Range{}, ErrExhausted
	}
	issued := Range{Low: base + 1, High: max(base+size, c.Peak+1)}
	chain := c.Outstanding
	if base != c.Max {
		// The numbers between are skipped permanently, so Max never falls to the end of
		// an older range again.
		chain = nil
	}
	next := Counter{
		Max:         issued.High,
		Peak:        issued.High,
		Outstanding: extend(chain, Outstanding{issued, token, holder}),
	}
	return next, issued, nil
}

// extend returns a new chain that ends with the newest range, without the oldest
// if it would get too long.
func extend(chain []Outstanding, newest Outstanding) []Outstanding {
	if len(chain) >= MaxOutstanding {
		chain = chain[len(chain)-MaxOutstanding+1:]
	}
	longer := make([]Outstanding, len(chain)+1)
	longer[copy(longer, chain)] = newest
	return longer
}

// Return takes back the numbers of a range above last: Max falls to last. It reports
// whether it did; only the rest of the newest outstanding range can be returned, so a
// late, repeated or invented return does nothing.
//
// A return is accepted if the range ends at Max, is the newest outstanding one, has
// the token (with checkToken), and if low-1 ≤ last ≤ high. A caller that knows
// neither token nor Low (RavenDB's HTTP clients) gives a Low of 0 without
// checkToken; then High alone names the range.
//
// If it comes back wholly unused (last is low-1), the range before it is the newest
// again, and can come back too. Otherwise nothing before it can: the numbers up to
// last are in use.
func (c Counter) Return(r Range, last int64, token uint64, checkToken bool) (Counter, bool) {
	if len(c.Outstanding) == 0 {
		return c, false
	}
	older := c.Outstanding[:len(c.Outstanding)-1]
	newest := c.Outstanding[len(older)]
	if !newest.names(r, token, checkToken) || newest.High != c.Max {
		return c, false
	}
	if last < newest.Low-1 || last > newest.High {
		return c, false
	}
	c.Max, c.Outstanding = last, nil
	if last < newest.Low && len(older) > 0 {
		c.Outstanding = slices.Clone(older)
	}
	return c, true
}

// names reports whether a caller's words for a range mean this one.
func (o Outstanding) names(r Range, token uint64, checkToken bool) bool {
	if r.High != o.High {
		return false
	}
	if checkToken {
		return token == o.Token && r.Low == o.Low
	}
	return r.Low == 0 || r.Low == o.Low
}

// Set raises Max to value if it is the expected one at present, for clients that run the whole
// algorithm on their own side, as RavenDB 3.x's did: such a client reads Max, adds a
// size, sets the sum, and then owns the numbers between. These cannot be given back,
// and neither can any range before them.
//
// The error is ErrConflict if Max is not the expected value, or would fall; the
// counter is then unchanged, and the client reads again.
func (c Counter) Set(value, expected int64) (Counter, error) {
	switch {
	case c.Max != expected || value < c.Max:
		return c, ErrConflict
	case value == c.Max:
		return c, nil
	}
	return Counter{Max: value, Peak: max(value, c.Peak)}, nil
}
