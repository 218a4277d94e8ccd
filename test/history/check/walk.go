package check

import (
	"math"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// maxPieces is the greatest number of pieces of a block; one that came in so
// many may have skipped free values.
const maxPieces = 64

// walk goes through the calls of one identity in their only possible order.
type walk struct {
	*identityCounter
	*findings
	where string
	// exact says that the counter was never set back, so that each value was
	// passed once.
	exact bool
	gaps  []gap

	// passed is how many values the counter went over.
	passed int64
}

// gap is a part of the counter's way of which no answer tells.
type gap struct {
	// from is what the counter held before, to what it must have come to. With
	// claimed it may stop short of to where the rest is claimed: the next block
	// steps over it.
	from, to int64
	claimed  bool
	// deadline is the latest time at which it can have got there, because of the
	// call until which says so.
	deadline int64
	// next is the call behind the gap, and until the one that sets the deadline.
	next, until int
}

// soonest is the call among some that returned first.
type soonest struct {
	ret int64
	pos int32
}

func (s *soonest) see(e *entry) {
	if e.ret < s.ret {
		*s = soonest{e.ret, e.pos}
	}
}

// epoch walks from the highest value down to where the counter began, so that
// what returned first among all calls behind the present one is known.
func (w *walk) epoch(entries []entry, epoch int) {
	start := int64(0)
	if epoch > 0 {
		start = w.resets[epoch-1].after
	}
	above := soonest{ret: history.Never}
	gaps := w.endOfEpoch(entries, epoch, start)
	first := len(w.gaps)
	claims := w.claims.values
	for end := len(entries); end > 0; {
		begin := end - 1
		for begin > 0 && entries[begin-1].last == entries[begin].last {
			begin--
		}
		before := start
		if begin > 0 {
			before = entries[begin-1].last
		}
		claims = w.claimedAbove(claims, entries[begin].last, above)
		w.level(entries[begin:end], before, above)
		for i := begin; i < end; i++ {
			above.see(&entries[i])
		}
		end = begin
	}
	w.claimedAbove(claims, start, above)
	slices.Reverse(w.gaps[first:])
	w.gaps = append(w.gaps, gaps...)
	if len(entries) > 0 {
		w.passed += max(entries[len(entries)-1].last-start, 0)
	}
}

// endOfEpoch is the way up to what a reset says that it found.
func (w *walk) endOfEpoch(entries []entry, epoch int, start int64) []gap {
	if epoch == len(w.resets) || w.resets[epoch].before == nil {
		return nil
	}
	r, top := w.resets[epoch], start
	if len(entries) > 0 {
		top = entries[len(entries)-1].last
	}
	if *r.before < top {
		w.violation("identities/back", w.where, []int{r.pos}, "it says that the counter stood at %d, when it stood at %d", *r.before, top)
		return nil
	}
	if *r.before == top {
		return nil
	}
	return []gap{{from: top, to: *r.before, deadline: r.ret, next: r.pos, until: r.pos}}
}

// level judges the calls that left the same value behind. The counter stood at
// before, and above is what returned first of all calls behind these.
func (w *walk) level(calls []entry, before int64, above soonest) {
	value := calls[0].last
	for i := range calls {
		e := &calls[i]
		if e.call > above.ret {
			w.violation("identities/order", w.where, []int{int(above.pos), int(e.pos)},
				"called at %s it came to %d, though a call that came further had returned at %s", at(e.call), value, at(above.ret))
		}
	}
	mover, rest := calls[0], calls[1:]
	among := above
	for i := range rest {
		among.see(&rest[i])
	}
	switch {
	case mover.kind == taken || mover.kind == moved:
		w.move(mover, rest, before, among)
	case before > value:
		w.violation("identities/back", w.where, []int{int(mover.pos)}, "it came to %d, when the counter began at %d", value, before)
	case before == value:
	default:
		w.arrive(calls, before, above)
	}
}

// move judges a level whose first call says from where it came.
func (w *walk) move(mover entry, rest []entry, before int64, among soonest) {
	value := mover.last
	for _, e := range rest {
		if e.kind == taken || e.kind == moved {
			w.clash(mover, e)
		}
	}
	if mover.call > among.ret && len(rest) > 0 && slices.ContainsFunc(rest, func(e entry) bool { return e.pos == among.pos }) {
		w.violation("identities/order", w.where, []int{int(among.pos), int(mover.pos)},
			"called at %s it moved the counter to %d, which another call had seen at %s", at(mover.call), value, at(among.ret))
	}
	among.see(&mover)
	if mover.kind == taken {
		w.takes(mover, among)
	}
	switch {
	case mover.first <= before:
		w.overlap(mover, before)
	case mover.first-1 > before:
		w.gaps = append(w.gaps, gap{
			from: before, to: mover.first - 1, claimed: mover.kind == taken,
			deadline: among.ret, next: int(mover.pos), until: int(among.pos),
		})
	}
}

// overlap reports a call that began below what the counter held already.
func (w *walk) overlap(e entry, before int64) {
	i, _ := slices.BinarySearchFunc(w.entries, e, compareEntries)
	if i > 0 && w.entries[i-1].epoch == e.epoch {
		w.clash(w.entries[i-1], e)
		return
	}
	w.violation("identities/back", w.where, []int{int(e.pos)}, "it moved the counter from %d to %d, when it stood at %d",
		e.first-1, e.last, before)
}

// clash reports two calls of which the second went where the first had been.
func (w *walk) clash(a, b entry) {
	ops := []int{int(a.pos), int(b.pos)}
	if a.kind == taken && b.kind == taken {
		w.violation("identities/twice", w.where, ops, "%d to %d and %d to %d were both handed out", a.first, a.last, b.first, b.last)
		return
	}
	w.violation("identities/back", w.where, ops, "one call moved the counter from %d to %d, though it came to %d by another",
		b.first-1, b.last, a.last)
}

// arrive judges a level to which no call says from where it came: a seed that
// raised the counter from anywhere, or a call of unknown outcome.
func (w *walk) arrive(calls []entry, before int64, above soonest) {
	if calls[0].kind == raised {
		// Of several seeds the earliest is the best one to have moved it.
		others := above
		for i := range calls[1:] {
			others.see(&calls[1+i])
		}
		if calls[0].call <= others.ret {
			return
		}
	}
	until := above
	for i := range calls {
		until.see(&calls[i])
	}
	w.gaps = append(w.gaps, gap{
		from: before, to: calls[0].last, deadline: until.ret, next: int(calls[0].pos), until: int(until.pos),
	})
}

// takes judges the pieces of a block: their values are not claimed, those
// between them are.
func (w *walk) takes(e entry, until soonest) {
	pieces := w.pieces[e.pos]
	if pieces == nil {
		pieces = []history.Block{{First: e.first, Last: e.last}}
	}
	for i, p := range pieces {
		w.issued(e, p)
		if i == 0 || len(pieces) == maxPieces {
			continue
		}
		for v := pieces[i-1].Last + 1; v < p.First; v++ {
			if !w.claims.maybe(v, until.ret) {
				w.violation("identities/hole", w.where, []int{int(e.pos)}, "the block steps over %d, which was not claimed", v)
				break
			}
		}
	}
}

// issued finds claimed values in a piece that was handed out.
func (w *walk) issued(e entry, p history.Block) {
	for _, c := range w.claims.from(p.First) {
		if c.value > p.Last {
			return
		}
		if claim, ok := c.heldDuring(e, w.exact); ok {
			w.violation("identities/claimed", w.where, []int{claim.pos, int(e.pos)}, "%d was handed out though it was claimed", c.value)
		}
	}
}

// claimedAbove judges the claims above a value and returns the others: a value
// that the counter had passed cannot be claimed any more, unless it was claimed
// when the counter passed it, and released since.
func (w *walk) claimedAbove(rest []claimed, value int64, above soonest) []claimed {
	for ; len(rest) > 0 && rest[len(rest)-1].value > value; rest = rest[:len(rest)-1] {
		if !w.exact {
			continue
		}
		for _, c := range rest[len(rest)-1].claims {
			if c.ok && c.call > above.ret && !rest[len(rest)-1].releasedBehind(above.ret, c) {
				w.violation("identities/claimed", w.where, []int{int(above.pos), c.pos},
					"%d was claimed at %s, though the counter had passed it at %s", rest[len(rest)-1].value, at(c.call), at(above.ret))
			}
		}
	}
	return rest
}

// explain looks for calls of unknown outcome that fill the gaps.
func (w *walk) explain() {
	for i := range w.claims.values {
		if a, b, ok := w.claims.values[i].twice(); ok {
			w.violation("identities/claimed", w.where, []int{a, b}, "%d was claimed twice and never released", w.claims.values[i].value)
		}
	}
	s := search{gaps: w.gaps, unknowns: &w.unknowns, claims: &w.claims, exact: w.exact}
	failed, decided := s.run()
	if failed < 0 {
		return
	}
	g := w.gaps[failed]
	ops := []int{g.next}
	if g.until != g.next && g.deadline != math.MaxInt64 {
		ops = append(ops, g.until)
	}
	if !decided {
		w.unknown("identities/hole", w.where, ops, "the search for what fills %d to %d took too long", g.from+1, g.to)
		return
	}
	w.violation("identities/hole", w.where, ops,
		"%d to %d: nobody got these, and no calls of unknown outcome made before %s fill this gap and those below it",
		g.from+1, g.to, at(g.deadline))
}
