package identity

import (
	"iter"
)

// Block is the values from First to Last, both included.
type Block struct {
	First, Last int64
}

// Size returns how many values the block has.
func (b Block) Size() int64 { return b.Last - b.First + 1 }

// Counter is what the cluster keeps for one identity. The zero Counter is that of an
// unused name.
type Counter struct {
	// Last is the last value that was handed out or seeded, so the first value of a
	// new identity is 1. It is negative only after a seed by force.
	Last int64
	// Hidden means that the identity was deleted: it is not listed, but keeps its last
	// value, and continues above it if it is used again.
	Hidden bool
}

// Next hands out the next count values (1 … MaxCount), stepping over claimed ones.
// They come in pieces, ascending, at most MaxPieces, together exactly count values;
// the new Last is the end of the last piece. Without a claim in the way it is one
// piece. A hidden identity is hidden no longer.
//
// claimed yields the claimed values from a given one on, ascending; nil means that
// there are none. Where more pieces than allowed would be needed, the smallest gaps
// between claims are skipped, and their values are never handed out; see gather for
// which. A count of MaxPieces or less never skips any.
//
// The errors are ErrCount, and an *ExhaustedError that wraps ErrExhausted; the
// counter is then unchanged.
func (c Counter) Next(count int64, claimed func(from int64) iter.Seq[int64]) (Counter, []Block, error) {
	if count < 1 || count > MaxCount {
		return c, nil, ErrCount
	}
	blocks, most, ok := gather(c.Last, count, claimed)
	if !ok {
		return c, nil, &ExhaustedError{Most: most}
	}
	return Counter{Last: blocks[len(blocks)-1].Last}, blocks, nil
}

// Seed sets the last value to value if that is higher, or with force in any case: then
// values may be handed out again. With expected it does so only if that is the current
// last value, of a hidden identity too; an unused name has 0. A hidden identity becomes
// visible, even if its value stays.
//
// The error is ErrConflict; the counter is then unchanged.
func (c Counter) Seed(value int64, force bool, expected *int64) (Counter, error) {
	if expected != nil && *expected != c.Last {
		return c, ErrConflict
	}
	if !force {
		value = max(c.Last, value)
	}
	return Counter{Last: value}, nil
}
