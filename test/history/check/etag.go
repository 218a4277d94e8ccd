package check

import "github.com/idnode/idnode/test/history"

// etagCounter judges the server-side ids of one node tag in one database: none
// comes twice, and none that was asked for after another had been answered is
// lower. The history goes on through restarts, so this holds across the node's
// incarnations. Holes are allowed. Decided exactly.
type etagCounter struct {
	ranges []idRange
}

// add takes a call in that did not fail. One of unknown outcome tells nothing.
func (c *etagCounter) add(op *history.Op, pos int, f *findings) {
	if op.Outcome != history.OK {
		return
	}
	if op.Node != "" && op.Node != op.Tag {
		f.violation("etags/tag", op.Database, []int{pos}, "node %q gave a server-side id with the tag %q", op.Node, op.Tag)
	}
	for _, b := range op.Blocks {
		c.ranges = append(c.ranges, idRange{b.First, b.Last, op.Call, op.Return, int32(pos)})
	}
}

// check returns how many etags were given.
func (c *etagCounter) check(where string, f *findings) int64 {
	rising(c.ranges, func(a, b idRange) {
		f.violation("etags/twice", where, []int{int(a.pos), int(b.pos)}, "%d to %d and %d to %d share numbers", a.first, a.last, b.first, b.last)
	}, func(higher, lower idRange) {
		f.violation("etags/order", where, []int{int(higher.pos), int(lower.pos)},
			"called at %s it gave %d, though %d had been given at %s", at(lower.call), lower.first, higher.first, at(higher.ret))
	})
	var n int64
	for _, s := range c.ranges {
		n += s.last - s.first + 1
	}
	return n
}
