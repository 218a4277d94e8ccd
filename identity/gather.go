package identity

import (
	"iter"
	"math"
	"slices"
)

// gather collects count free values above last and returns them as blocks,
// ascending. It reports false if they do not end at or below 2^63-1; most is then
// the greatest count with which they would.
//
// The free values between two claims are a gap. gather walks the gaps upwards and
// ends in the first one with which the count is reached, given that of the gaps
// before it only the MaxPieces-1 longest can be used, and of equally long ones the
// lowest. So the block ends as low as MaxPieces pieces allow.
//
// Taking gap after gap until the pieces run out, and then one gap for the rest, would
// leave long gaps unused behind short ones.
func gather(last, count int64, claimed func(from int64) iter.Seq[int64]) (blocks []Block, most int64, ok bool) {
	if last == math.MaxInt64 {
		return nil, 0, false
	}
	if claimed == nil {
		p := pieces{count: count, missing: count}
		complete := p.offer(Block{last + 1, math.MaxInt64})
		return p.blocks, p.most, complete
	}
	w := walk{pieces: pieces{count: count, missing: count}, next: last + 1}
	// Called, not ranged over: the body of a range would move every shared variable to
	// the heap, in the hottest path of the state machine.
	claimed(w.next)(w.pass)
	if w.missing > 0 && !w.ended {
		w.offer(Block{w.next, math.MaxInt64})
	}
	return w.blocks, w.most, w.missing == 0
}

// walk is the position of gather on its way up.
type walk struct {
	pieces
	next  int64 // The lowest value that was not looked at yet.
	ended bool  // 2^63-1 is claimed and was passed; next is of no use then.
}

// pass steps over a claim and reports whether there is need to go on. A claim that
// was passed already does no harm.
func (w *walk) pass(claim int64) bool {
	if claim > w.next && w.offer(Block{w.next, claim - 1}) {
		return false
	}
	if claim == math.MaxInt64 {
		w.ended = true
		return false
	}
	w.next = max(w.next, claim+1)
	return true
}

// pieces is what gather has kept so far.
//
// Invariant: while missing is above 0, there are fewer than MaxPieces blocks.
type pieces struct {
	blocks  []Block // Ascending.
	count   int64   // How many values are wanted.
	missing int64   // How many values the blocks lack of the count.
	most    int64   // The greatest count that the gaps so far would have reached.
	// least is the position of the shortest block, the highest of several. It is
	// valid while there is room for the last piece only.
	least int
}

// offer adds a gap above all earlier ones and reports whether the count is reached
// with it. What the count does not need of the gap is left.
func (p *pieces) offer(gap Block) bool {
	// The distance is unsigned, because a gap from below 0 to the end of int64 has
	// more than 2^63-1 values.
	if distance := uint64(gap.Last) - uint64(gap.First); distance >= uint64(p.missing-1) {
		p.blocks = append(p.blocks, Block{gap.First, gap.First + p.missing - 1})
		p.missing = 0
		return true
	}
	p.most = max(p.most, p.count-p.missing+gap.Size())
	p.keep(gap)
	return false
}

// keep adds a gap that is shorter than what is missing. One place is left for the
// last piece, so a gap may have to push out a shorter one, or is skipped itself.
func (p *pieces) keep(gap Block) {
	if len(p.blocks) == MaxPieces-1 {
		shortest := p.blocks[p.least].Size()
		if gap.Size() <= shortest {
			return
		}
		p.blocks = slices.Delete(p.blocks, p.least, p.least+1)
		p.missing += shortest
	}
	p.blocks = append(p.blocks, gap)
	p.missing -= gap.Size()
	if len(p.blocks) == MaxPieces-1 {
		p.least = shortestOf(p.blocks)
	}
}

// shortestOf returns the position of the shortest block, the highest of several.
func shortestOf(blocks []Block) int {
	least := 0
	for i, b := range blocks {
		if b.Size() <= blocks[least].Size() {
			least = i
		}
	}
	return least
}
