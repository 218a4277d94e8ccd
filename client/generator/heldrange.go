package generator

import (
	"fmt"
	"sync/atomic"
)

// line is the distance between two variables, in bytes, from which writing one does not slow
// down reading the other: two cache lines, since processors fetch them in pairs.
const line = 128

// exhausted is a count above every range's size; the counter never falls below it again.
const exhausted = 1 << 63

// heldRange is a range from which numbers are taken.
//
// The counter counts the numbers taken, instead of holding the next number: it keeps rising
// past the range's end, and a range may end at the greatest integer.
//
// Invariant: the caller that raised used past a number has taken that number, if used was
// then at most size.
type heldRange struct {
	Range
	suffix string // follows the number: "-A"
	size   uint64 // the range's size; 0 before the first range
	half   uint64 // the number after which the next range is fetched, counted from 1

	_    [line]byte
	used atomic.Uint64
	_    [line - 8]byte
}

func newHeldRange(r Range) *heldRange {
	s := &heldRange{Range: r, size: uint64(r.Size())}
	s.half = (s.size + 1) / 2
	if r.NodeTag != "" {
		s.suffix = "-" + r.NodeTag
	}
	return s
}

// block is n consecutive numbers of a range, starting at first; empty if n is 0.
type block struct {
	of    *heldRange
	first int64
	n     uint64
}

// take takes up to n numbers. half reports whether the next range is to be fetched after
// them.
func (h *heldRange) take(n uint64) (b block, half bool) {
	if h.empty() {
		// The counter never wraps around, however often callers ask in vain.
		return block{}, false
	}
	end := h.used.Add(n)
	begin := end - n
	if begin >= h.size {
		return block{}, false
	}
	end = min(end, h.size)
	return block{h, h.Low + int64(begin), end - begin}, begin < h.half && h.half <= end
}

// empty reports whether no number is left.
func (h *heldRange) empty() bool { return h.used.Load() >= h.size }

// exhaust makes the range empty, and returns the last number taken before, Low-1 if none
// was taken.
func (h *heldRange) exhaust() (last int64) {
	used := min(h.used.Swap(exhausted), h.size)
	return h.Low + int64(used) - 1
}

// appendIDs appends the ids of the block's numbers.
func (b block) appendIDs(ids []string) []string {
	for i := range int64(b.n) {
		ids = append(ids, Number{b.first + i, b.of}.String())
	}
	return ids
}

// check returns what is wrong with a range that follows one ending at lastMax, or nil.
func check(r Range, lastMax int64) error {
	switch {
	case r.Low < 1 || r.High < r.Low:
		return fmt.Errorf("%w: %d to %d", ErrRange, r.Low, r.High)
	case r.Low <= lastMax && !r.FromReserve:
		return fmt.Errorf("%w: %d to %d, though the last one ended at %d", ErrRange, r.Low, r.High, lastMax)
	case r.Granted < 0:
		return fmt.Errorf("%w: a size of %d", ErrRange, r.Granted)
	}
	return nil
}
