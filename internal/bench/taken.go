package bench

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// block is a run of numbers of one counter. A GUID is a block too: its counter
// is its first half, its number the second.
type block struct {
	counter     uint64
	first, last int64
}

// guidBlock returns a GUID as a block of one number.
func guidBlock(text string) (block, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != 16 {
		return block{}, fmt.Errorf("%q is no GUID", text)
	}
	var halves [2]uint64
	for i, b := range raw {
		halves[i/8] = halves[i/8]<<8 | uint64(b)
	}
	return block{counter: halves[0], first: int64(halves[1]), last: int64(halves[1])}, nil
}

// checkUnique returns an error that names an id that came twice. It sorts all.
func checkUnique(all []block) error {
	slices.SortFunc(all, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.counter, b.counter), cmp.Compare(a.first, b.first))
	})
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if before.counter == after.counter && after.first <= before.last {
			return fmt.Errorf("an id came twice: number %d of counter %d is in the blocks %d–%d and %d–%d",
				after.first, after.counter, before.first, before.last, after.first, after.last)
		}
	}
	return nil
}
