package identity_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/idnode/idnode/identity"
)

// A counter hands out blocks of values, and steps over the values whose ids are claimed.
func ExampleCounter_Next() {
	taken := []int64{3, 6}
	claimed := func(from int64) iter.Seq[int64] {
		i, _ := slices.BinarySearch(taken, from)
		return slices.Values(taken[i:])
	}
	var c identity.Counter
	c, blocks, err := c.Next(2, claimed)
	fmt.Println(blocks, c.Last, err)
	c, blocks, err = c.Next(3, claimed)
	fmt.Println(blocks, c.Last, err)
	// Output:
	// [{1 2}] 2 <nil>
	// [{4 5} {7 7}] 7 <nil>
}

// Seed raises a counter. It lowers one only by force: then values may be handed out twice.
func ExampleCounter_Seed() {
	c := identity.Counter{Last: 7}
	raised, _ := c.Seed(100, false, nil)
	kept, _ := c.Seed(5, false, nil)
	lowered, _ := c.Seed(5, true, nil)
	fmt.Println(raised.Last, kept.Last, lowered.Last)

	expected := int64(6)
	_, err := c.Seed(100, false, &expected)
	fmt.Println(err)
	// Output:
	// 100 7 5
	// identity: the last value is not the expected one
}
