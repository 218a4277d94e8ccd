package check

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// unknowns are the calls on one identity that may have taken effect, at any time
// after they were made.
type unknowns struct {
	// nexts are the times of calls for so many values, by their number.
	nexts map[int64][]int64
	seeds []unknownSeed
}

// unknownSeed is a seed without force.
type unknownSeed struct {
	value, call int64
	expected    *int64
}

func (u *unknowns) next(count, call int64) {
	if u.nexts == nil {
		u.nexts = make(map[int64][]int64)
	}
	u.nexts[count] = append(u.nexts[count], call)
}

func (u *unknowns) seed(op *history.Op) {
	u.seeds = append(u.seeds, unknownSeed{op.Value, op.Call, op.Expected})
}

// maxSteps bounds a search. One that needs more is undecided.
const maxSteps = 1 << 21

// search looks for a way to fill all gaps with calls of unknown outcome, each
// used at most once.
//
// The deadlines of the gaps never fall from one to the next, so a call that was
// made in time for one gap is in time for all behind it. Therefore it does not
// matter which of several calls for equally many values is used, only how many.
type search struct {
	gaps     []gap
	unknowns *unknowns
	claims   *claims
	exact    bool

	// counts are the numbers of values asked for, the greatest first; calls their
	// times in order; used how many of each are in use.
	counts []int64
	calls  [][]int64
	used   []int
	// usedSeeds says which seeds are in use.
	usedSeeds []bool
	// dead are the states from which no way leads on.
	dead  map[string]struct{}
	steps int
	// furthest is the gap furthest up that some way came to.
	furthest int
}

// run returns the first gap that cannot be filled, or -1. If it is not decided
// the search took too long.
func (s *search) run() (failed int, decided bool) {
	s.counts = slices.Sorted(maps.Keys(s.unknowns.nexts))
	slices.Reverse(s.counts)
	for _, n := range s.counts {
		s.calls = append(s.calls, slices.Sorted(slices.Values(s.unknowns.nexts[n])))
	}
	if len(s.counts) <= 1 && len(s.unknowns.seeds) == 0 && len(s.claims.values) == 0 {
		return s.count(), true
	}
	s.used = make([]int, len(s.counts))
	s.usedSeeds = make([]bool, len(s.unknowns.seeds))
	s.dead = make(map[string]struct{})
	if s.fill(0) {
		return -1, true
	}
	return s.furthest, s.steps <= maxSteps
}

// count fills the gaps if all calls are for the same number of values: then there
// is only one way.
func (s *search) count() (failed int) {
	left := uint64(0) // of the calls made in time, those that are not in use
	made := 0
	for i, g := range s.gaps {
		if len(s.counts) == 0 || g.distance(g.from)%uint64(s.counts[0]) != 0 {
			return i
		}
		now := inTime(s.calls[0], g.deadline)
		left, made = left+uint64(now-made), now
		needed := g.distance(g.from) / uint64(s.counts[0])
		if needed > left {
			return i
		}
		left -= needed
	}
	return -1
}

// distance is how far it is from a state to the end of the gap. It can be more
// than an int64 holds.
func (g *gap) distance(state int64) uint64 { return uint64(g.to) - uint64(state) }

// inTime is how many calls were made up to a time.
func inTime(calls []int64, deadline int64) int {
	n, _ := slices.BinarySearchFunc(calls, deadline, func(call, deadline int64) int {
		if call <= deadline {
			return -1
		}
		return 1
	})
	return n
}

// fill fills the gaps from one on.
func (s *search) fill(i int) bool {
	if i == len(s.gaps) {
		return true
	}
	s.furthest = max(s.furthest, i)
	return s.from(i, s.gaps[i].from)
}

// from fills what is left of a gap, and the gaps behind it.
func (s *search) from(i int, state int64) bool {
	g := &s.gaps[i]
	if s.closed(g, state) {
		// Going on within the gap would only use up more.
		return s.fill(i + 1)
	}
	s.steps++
	if s.steps > maxSteps || s.wasHere(i, state) {
		return false
	}
	return s.seedOn(i, state) || s.nextOn(i, state)
}

// closed says whether a gap is filled at a state.
func (s *search) closed(g *gap, state int64) bool {
	if state == g.to || !g.claimed {
		return state == g.to
	}
	tail := s.claims.from(state + 1)
	if uint64(len(tail)) < g.distance(state) {
		return false
	}
	for k, c := range tail[:g.distance(state)] {
		if c.value != state+1+int64(k) || !c.maybe(g.deadline) {
			return false
		}
	}
	return true
}

// wasHere says whether the search was in this state before, and if so in vain.
func (s *search) wasHere(i int, state int64) bool {
	key := binary.AppendVarint(binary.AppendUvarint(nil, uint64(i)), state)
	for _, n := range s.used {
		key = binary.AppendUvarint(key, uint64(n))
	}
	for k, used := range s.usedSeeds {
		if used {
			key = binary.AppendUvarint(key, uint64(k)+1)
		}
	}
	if _, ok := s.dead[string(key)]; ok {
		return true
	}
	s.dead[string(key)] = struct{}{}
	return false
}

// seedOn tries the seeds that lead on from a state.
func (s *search) seedOn(i int, state int64) bool {
	g := &s.gaps[i]
	for k, seed := range s.unknowns.seeds {
		to := seed.value
		if seed.expected != nil {
			if *seed.expected != state {
				continue
			}
			to = max(to, state)
		}
		if s.usedSeeds[k] || seed.call > g.deadline || to <= state || to > g.to {
			continue
		}
		s.usedSeeds[k] = true
		if s.from(i, to) {
			return true
		}
		s.usedSeeds[k] = false
	}
	return false
}

// nextOn tries the calls for values that lead on from a state.
func (s *search) nextOn(i int, state int64) bool {
	g := &s.gaps[i]
	for k, n := range s.counts {
		if s.used[k] >= inTime(s.calls[k], g.deadline) {
			continue
		}
		s.used[k]++
		for _, to := range s.after(g, state, n) {
			if s.from(i, to) {
				return true
			}
		}
		s.used[k]--
	}
	return false
}

// after returns the states within a gap to which a call for n values can lead:
// it steps over what is claimed for certain, and may step over what may be.
func (s *search) after(g *gap, state, n int64) []int64 {
	var ends []int64
	// Between fewest and most values are still to be taken, depending on how many
	// of those that may be claimed were stepped over.
	fewest, most := n, n
	free := func(last int64) { // values up to last that are not claimed
		length := int64(min(uint64(last)-uint64(state), math.MaxInt64-1))
		for k := fewest; k <= min(most, length); k++ {
			ends = append(ends, state+k)
		}
		fewest, most = max(fewest, length+1)-length, most-length
		state = last
	}
	for _, c := range s.claims.from(state + 1) {
		if c.value > g.to || most < 1 {
			break
		}
		free(c.value - 1)
		if most < 1 {
			break
		}
		state = c.value
		if c.always(s.exact) {
			continue
		}
		if fewest == 1 {
			ends = append(ends, c.value)
		}
		if !c.maybe(g.deadline) {
			most--
		}
		fewest = max(fewest-1, 1)
	}
	if most >= 1 && state < g.to {
		free(g.to)
	}
	return ends
}
