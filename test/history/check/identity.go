package check

import (
	"math"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// identityCounter judges the calls on one identity.
//
// The counter says what it holds in every answer, so the answers alone order the
// calls: by the value they left behind, and of those that left the same one, the
// call that moved the counter there before those that found it there. That order
// is the only one possible. It is right if and only if no call in it was made
// after one behind it had returned, and if what lies between two neighbours is
// explained by calls of unknown outcome, claims or a seed.
//
// Decided exactly, that is, a violation is one and no violation is missed (random
// small histories are compared with a search through all orders):
//
//   - next, alone and in blocks, of known and unknown outcome;
//   - seeds, with and without an expected value, of known and unknown outcome;
//   - linearizable reads, and the value that hiding an identity answers;
//   - claims of known and unknown outcome that are not released, on names
//     that are never set back: a claimed value is stepped over and never issued,
//     and an issued one never claimed;
//   - seeds by force and forgetting, if no other call on the name runs at the same
//     time as one of them.
//
// Not decided, and reported as undecided: a seed by force or a forget beside
// another call; one of unknown outcome, if the history is wrong without it; a
// search for what explains the holes that takes more than maxSteps steps, which
// needs unknown calls for blocks of many different sizes.
//
// Decided in one direction only, so that a report is never wrong: where claims
// are released, or claims meet a name that was set back, a claim that can have
// stood at some time explains a hole, and only a value that was certainly
// claimed all the while counts as wrongly issued. A block in 64 pieces may skip
// free values. Stale reads, and what a failed call says (that a name does not
// exist, that a value was not the expected one), are not looked at. All calls
// are taken to use one separator.
//
// A name begins at 0.
type identityCounter struct {
	entries []entry
	// values is how many values were handed out.
	values int64
	// pieces are the blocks of calls that came in more than one, by position.
	pieces map[int32][]history.Block
	resets []reset
	// maybeResets are positions of resets of unknown outcome.
	maybeResets []int
	unknowns    unknowns
	claims      claims
	// wrong are answers that are wrong by themselves.
	wrong findings
}

// entry is a call that said what the counter held: 40 bytes, because there are
// millions.
type entry struct {
	// first is the first value of a take, and of a move the value before it, plus
	// one. Of others it is last.
	first int64
	// last is the value that the call left behind.
	last      int64
	call, ret int64
	pos       int32
	// epoch is how many times the counter had been set back before.
	epoch uint16
	kind  entryKind
}

// entryKind says how a call came to the value it left behind. The order is that
// of the calls at one value.
type entryKind uint8

const (
	// taken moved the counter from first-1, or from below where the values
	// between are claimed, and its values are the caller's.
	taken entryKind = iota
	// moved moved the counter from first-1 and is nobody's.
	moved
	// raised moved the counter from anywhere below, or found it there.
	raised
	// seen found it there.
	seen
)

// reset is a call that sets the counter back: a seed by force, or a forget.
type reset struct {
	call, ret int64
	pos       int
	// before is what the counter held, if the answer or the question says so.
	before *int64
	// after is what it held then.
	after int64
}

// add takes a call in that did not fail.
func (c *identityCounter) add(op *history.Op, pos int) {
	if op.Outcome == history.Unknown {
		c.addUnknown(op, pos)
		return
	}
	switch op.Kind {
	case history.Next:
		c.addNext(op, pos)
	case history.Seed:
		c.addSeed(op, pos)
	case history.Get:
		if !op.Stale {
			c.put(op, pos, seen, op.Result, op.Result)
		}
	case history.Delete:
		if op.Forget {
			c.resets = append(c.resets, reset{op.Call, op.Return, pos, &op.Result, 0})
			return
		}
		c.put(op, pos, seen, op.Result, op.Result)
	case history.Claim, history.Release:
		c.claims.add(op, pos)
	}
}

func (c *identityCounter) put(op *history.Op, pos int, kind entryKind, first, last int64) {
	c.entries = append(c.entries, entry{first: first, last: last, call: op.Call, ret: op.Return, pos: int32(pos), kind: kind})
}

func (c *identityCounter) addNext(op *history.Op, pos int) {
	got := history.Size(op.Blocks)
	c.values += got
	if want := count(op); got != want {
		c.wrong.violation("identities/count", "", []int{pos}, "%d values were asked for and %d came", want, got)
	}
	if len(op.Blocks) > 1 {
		if c.pieces == nil {
			c.pieces = make(map[int32][]history.Block)
		}
		c.pieces[int32(pos)] = op.Blocks
	}
	c.put(op, pos, taken, op.Blocks[0].First, op.Blocks[len(op.Blocks)-1].Last)
}

func (c *identityCounter) addSeed(op *history.Op, pos int) {
	value := op.Value
	if op.Expected != nil && !op.Force {
		value = max(value, *op.Expected)
	}
	exact := op.Force || op.Expected != nil
	if op.Result < value || exact && op.Result != value {
		c.wrong.violation("identities/seed", "", []int{pos}, "seeded with %d, answered %d", op.Value, op.Result)
		return
	}
	switch {
	case op.Force:
		c.resets = append(c.resets, reset{op.Call, op.Return, pos, op.Expected, op.Value})
	case op.Expected != nil && *op.Expected < op.Result:
		c.put(op, pos, moved, *op.Expected+1, op.Result)
	case op.Expected == nil && op.Result == op.Value:
		c.put(op, pos, raised, op.Result, op.Result)
	default:
		c.put(op, pos, seen, op.Result, op.Result)
	}
}

// addUnknown takes a call in that may have happened.
func (c *identityCounter) addUnknown(op *history.Op, pos int) {
	switch op.Kind {
	case history.Next:
		c.unknowns.next(count(op), op.Call)
	case history.Seed:
		if op.Force {
			c.maybeResets = append(c.maybeResets, pos)
			return
		}
		c.unknowns.seed(op)
	case history.Delete:
		if op.Forget {
			c.maybeResets = append(c.maybeResets, pos)
		}
	case history.Claim, history.Release:
		c.claims.add(op, pos)
	}
}

// check judges the counter and returns how many values were handed out, and how
// many below the last one were not.
func (c *identityCounter) check(where string, f *findings) (values, holes int64) {
	for _, v := range c.wrong.violations {
		f.violation(v.Rule, where, v.Ops, "%s", v.Why)
	}
	if len(c.maybeResets) == 0 {
		return c.decide(where, f)
	}
	// Without the resets that may have happened the history can be right.
	var without findings
	values, holes = c.decide(where, &without)
	if len(without.violations)+len(without.undecided) > 0 {
		f.unknown("identities/reset", where, c.maybeResets,
			"a seed by force or a forget of unknown outcome, without which: %s", append(without.violations, without.undecided...)[0].Why)
	}
	return values, holes
}

// decide judges the counter as if no unknown reset had happened.
func (c *identityCounter) decide(where string, f *findings) (values, holes int64) {
	if !c.cut(where, f) {
		return c.values, 0
	}
	c.claims.sort()
	slices.SortFunc(c.entries, compareEntries)
	w := walk{identityCounter: c, where: where, findings: f, exact: len(c.resets) == 0}
	rest := c.entries
	for epoch := range len(c.resets) + 1 {
		n, _ := slices.BinarySearchFunc(rest, epoch+1, func(e entry, n int) int { return int(e.epoch) - n })
		w.epoch(rest[:n], epoch)
		rest = rest[n:]
	}
	w.explain()
	return c.values, max(w.passed-c.values, 0)
}

// compareEntries is the order in which the calls must have taken effect; among
// those for which it does not matter, the earliest first.
func compareEntries(a, b entry) int {
	switch {
	case a.epoch != b.epoch:
		return int(a.epoch) - int(b.epoch)
	case a.last != b.last:
		if a.last < b.last {
			return -1
		}
		return 1
	case a.kind != b.kind:
		return int(a.kind) - int(b.kind)
	case a.call != b.call:
		if a.call < b.call {
			return -1
		}
		return 1
	}
	return int(a.pos) - int(b.pos)
}

// cut tells each entry how many resets were before it. It reports false if that
// cannot be said.
func (c *identityCounter) cut(where string, f *findings) bool {
	if len(c.resets) == 0 {
		return true
	}
	slices.SortFunc(c.resets, func(a, b reset) int {
		if a.call < b.call {
			return -1
		}
		return 1
	})
	for i, r := range c.resets[1:] {
		if before := c.resets[i]; r.call <= before.ret {
			f.unknown("identities/reset", where, []int{before.pos, r.pos}, "two seeds by force or forgets at the same time")
			return false
		}
	}
	if len(c.resets) >= math.MaxUint16 {
		f.unknown("identities/reset", where, nil, "%d seeds by force and forgets", len(c.resets))
		return false
	}
	for i := range c.entries {
		e := &c.entries[i]
		n, _ := slices.BinarySearchFunc(c.resets, e.call, func(r reset, call int64) int {
			if r.ret < call {
				return -1
			}
			return 1
		})
		if n < len(c.resets) && c.resets[n].call <= e.ret {
			f.unknown("identities/reset", where, []int{c.resets[n].pos, int(e.pos)}, "a seed by force or a forget beside another call on the name")
			return false
		}
		e.epoch = uint16(n)
	}
	return true
}
