package check

import (
	"cmp"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// hiloCounter judges the ranges of one HiLo tag.
//
// A range is its holder's from the moment it was answered. What lies above the
// last used number is the holder's until it calls a return that is accepted, or
// may be; what lies below is permanent. A violation is
//
//   - a number used twice;
//   - two ranges that share numbers at a time at which both were held;
//   - a High that names two ranges, or that is lower than one answered before
//     the range was asked for;
//   - an accepted return of a range that no caller has, of another beginning, of a
//     last number outside of it, of a range that is not the newest, or the second
//     return of one range;
//   - a used number that is in no range of its tag, that is in a range with
//     another node tag, or that had been given back;
//   - a range asked for after a merge was answered that begins at or below the
//     merged value;
//   - a range smaller than was asked for.
//
// A range from a reserve was granted earlier than it was asked for: it may be lower than
// others, at or below a merged value, and smaller.
//
// Ranges whose answers were lost are holes, and a return of unknown outcome may
// have been accepted at any time after its call, or not; so neither is held
// against the cluster. That Max is no higher than it must be is not looked at:
// last_max and sizes are the caller's.
type hiloCounter struct {
	ranges  []hiloRange
	returns []hiloReturn
	uses    []hiloUse
	merges  []hiloMerge
	// lost are the times of calls for ranges of unknown outcome.
	lost []int64
	// wrong are answers that are wrong by themselves.
	wrong findings
}

// hiloRange is numbers that a caller was given.
type hiloRange struct {
	low, high int64
	call, ret int64
	tag       string
	pos       int
	// set says that a client took the numbers itself: then high is not unique.
	set bool
	// reserve says that it is from a reserve.
	reserve bool

	// given is when the holder called the return that took effect, or may have;
	// Never if there is none.
	given int64
	// last is the last number that stays taken when it did.
	last int64
	// accepted is the return that was accepted; nil if there is none.
	accepted *hiloReturn
}

// hiloReturn is a return that was accepted, or may have been.
type hiloReturn struct {
	low, high, last int64
	call, ret       int64
	pos             int
	ok              bool
}

// hiloUse is a client's use of numbers of one range.
type hiloUse struct {
	low, high int64
	tag       string
	call      int64
	blocks    []history.Block
	pos       int
}

// hiloMerge is a merge that was answered.
type hiloMerge struct {
	value, ret int64
	pos        int
}

// add takes a call or a use in that did not fail.
func (c *hiloCounter) add(op *history.Op, pos int) {
	ok := op.Outcome == history.OK
	switch op.Kind {
	case history.Range:
		c.addRange(op, pos, ok)
	case history.Return:
		if op.Returned || !ok {
			c.returns = append(c.returns, hiloReturn{op.Low, op.High, op.Last, op.Call, op.Return, pos, ok})
		}
		if op.Returned && ok && op.Result != op.Last {
			c.wrong.violation("hilo/return", "", []int{pos}, "after the return of all above %d Max is %d", op.Last, op.Result)
		}
	case history.Set:
		if ok && op.Expected != nil && *op.Expected < op.Value {
			c.ranges = append(c.ranges, hiloRange{
				low: *op.Expected + 1, high: op.Value, call: op.Call, ret: op.Return, pos: pos, set: true, given: history.Never,
			})
		}
		if ok && op.Result != op.Value {
			c.wrong.violation("hilo/set", "", []int{pos}, "set to %d, answered %d", op.Value, op.Result)
		}
	case history.Merge:
		if ok {
			c.merges = append(c.merges, hiloMerge{op.Value, op.Return, pos})
		}
	case history.Use:
		if ok {
			c.uses = append(c.uses, hiloUse{op.Low, op.High, op.Tag, op.Call, op.Blocks, pos})
		}
	}
}

func (c *hiloCounter) addRange(op *history.Op, pos int, ok bool) {
	if !ok {
		c.lost = append(c.lost, op.Call)
		return
	}
	if op.Low < 1 || op.High-op.Low+1 < op.Count && !op.Reserve {
		c.wrong.violation("hilo/size", "", []int{pos}, "%d numbers were asked for, and %d to %d came", op.Count, op.Low, op.High)
	}
	c.ranges = append(c.ranges, hiloRange{
		low: op.Low, high: op.High, call: op.Call, ret: op.Return, tag: op.Tag, pos: pos, given: history.Never, reserve: op.Reserve,
	})
}

// check judges the tag and returns how many numbers were used.
func (c *hiloCounter) check(where string, f *findings) int64 {
	j := hiloJudge{hiloCounter: c, findings: f, where: where}
	for _, v := range c.wrong.violations {
		f.violation(v.Rule, where, v.Ops, "%s", v.Why)
	}
	j.names()
	j.merged()
	for i := range c.returns {
		j.giveBack(&c.returns[i])
	}
	j.lives()
	return j.used()
}

// hiloJudge is one check of a tag.
type hiloJudge struct {
	*hiloCounter
	*findings
	where string
	// byHigh leads from a range's High to its place in ranges.
	byHigh map[int64]int
	// reserved leads from a range of a reserve to its place. It may end where one ended
	// that was given back: returns are of the others.
	reserved map[history.Block]int
}

// names checks that a High names one range, and that later ones are higher.
func (j *hiloJudge) names() {
	j.byHigh, j.reserved = make(map[int64]int), make(map[history.Block]int)
	var highs []idRange
	for i, r := range j.ranges {
		switch {
		case r.set:
		case r.reserve:
			j.reserved[history.Block{First: r.low, Last: r.high}] = i
		default:
			j.byHigh[r.high] = i
			highs = append(highs, idRange{r.high, r.high, r.call, r.ret, int32(r.pos)})
		}
	}
	rising(highs, func(a, b idRange) {
		j.violation("hilo/high", j.where, []int{int(a.pos), int(b.pos)}, "two ranges end at %d", a.first)
	}, func(higher, lower idRange) {
		j.violation("hilo/high", j.where, []int{int(higher.pos), int(lower.pos)},
			"asked for at %s a range ends at %d, though one that ends at %d was answered at %s",
			at(lower.call), lower.first, higher.first, at(higher.ret))
	})
}

// merged checks that nothing at or below a merged value is given out after the
// merge.
func (j *hiloJudge) merged() {
	// highest is, of the merges that were answered first, the one with the highest
	// value.
	highest := slices.Clone(j.merges)
	slices.SortFunc(highest, func(a, b hiloMerge) int { return cmp.Compare(a.ret, b.ret) })
	ends := make([]int64, len(highest))
	for i := range highest {
		ends[i] = highest[i].ret
		if i > 0 && highest[i-1].value > highest[i].value {
			highest[i] = highest[i-1]
		}
	}
	for _, r := range j.ranges {
		before, _ := slices.BinarySearch(ends, r.call)
		if before == 0 || highest[before-1].value < r.low || r.reserve {
			continue
		}
		m := highest[before-1]
		j.violation("hilo/merged", j.where, []int{m.pos, r.pos}, "%d to %d was given out, though %d had been merged at %s", r.low,
			r.high, m.value, at(m.ret))
	}
}

// giveBack matches a return with its range.
func (j *hiloJudge) giveBack(b *hiloReturn) {
	i, known := j.byHigh[b.high]
	if !known {
		lost := slices.ContainsFunc(j.lost, func(call int64) bool { return call <= b.ret })
		if b.ok && !lost {
			j.violation("hilo/return", j.where, []int{b.pos}, "a range that ends at %d was taken back, and nobody has one", b.high)
		}
		return
	}
	r := &j.ranges[i]
	if b.last < r.low-1 || b.last > r.high || b.low != 0 && b.low != r.low || b.ret < r.call {
		if b.ok {
			j.violation("hilo/return", j.where, []int{r.pos, b.pos},
				"of %d to %d was taken back what lies above %d (its low given as %d)", r.low, r.high, b.last, b.low)
		}
		return
	}
	switch {
	case b.ok && r.accepted != nil:
		j.violation("hilo/return", j.where, []int{r.accepted.pos, b.pos}, "%d to %d was taken back twice", r.low, r.high)
	case b.ok:
		r.accepted, r.given, r.last = b, b.call, b.last
	case r.accepted != nil: // at most one is accepted, and that one is known
	case r.given == history.Never:
		r.given, r.last = b.call, b.last
	default:
		r.given, r.last = min(r.given, b.call), min(r.last, b.last)
	}
}

// used checks the numbers that clients used, and returns how many there are.
func (j *hiloJudge) used() int64 {
	var n int64
	var ranges []idRange
	for i := range j.uses {
		u := &j.uses[i]
		for _, b := range u.blocks {
			n += b.Last - b.First + 1
			ranges = append(ranges, idRange{first: b.First, last: b.Last, pos: int32(u.pos)})
		}
		if u.high != 0 {
			j.belongs(u)
		}
	}
	rising(ranges, func(a, b idRange) {
		j.violation("hilo/twice", j.where, []int{int(a.pos), int(b.pos)}, "%d to %d and %d to %d were used", a.first, a.last, b.first, b.last)
	}, nil)
	return n
}

// belongs checks that used numbers are of the range that they say.
func (j *hiloJudge) belongs(u *hiloUse) {
	i, known := j.byHigh[u.high]
	if n, ok := j.reserved[history.Block{First: u.low, Last: u.high}]; ok && (!known || u.call >= j.ranges[n].call) {
		i, known = n, true
	}
	first, last := u.blocks[0].First, u.blocks[len(u.blocks)-1].Last
	if !known {
		j.violation("hilo/foreign", j.where, []int{u.pos},
			"%d to %d were used of a range that ends at %d, and nobody was given one", first, last, u.high)
		return
	}
	r := &j.ranges[i]
	ops := []int{r.pos, u.pos}
	switch {
	case u.low != r.low || first < r.low || last > r.high:
		j.violation("hilo/foreign", j.where, ops, "%d to %d were used of %d to %d, and the range is %d to %d", first, last,
			u.low, u.high, r.low, r.high)
	case u.tag != r.tag:
		j.violation("hilo/tag", j.where, ops, "%d to %d were used with the node tag %q, and the range has %q", first, last, u.tag, r.tag)
	case u.call < r.call:
		j.violation("hilo/foreign", j.where, ops, "%d to %d were used before the range was asked for", first, last)
	case r.accepted != nil && last > r.last:
		j.violation("hilo/foreign", j.where, append(ops, r.accepted.pos), "%d was used, and all above %d given back", last, r.last)
	}
}
