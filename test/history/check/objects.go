package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/idnode/idnode/test/history"
)

// object says what calls do to an identity, a HiLo tag or an id. A state is a comparable
// value, and serving a call gives a new one.
type object interface {
	// begin is the state before all calls.
	begin() any
	// serve says whether the call can have had its answer, and the state then.
	serve(state any, c *linearCall) (bool, any)
	// explains says whether the call, whose answer is not known, may take effect and can
	// explain anything by that, and the state then. Invariant: if there is an order of the
	// calls at all, there is one in which all other calls of unknown outcome do nothing.
	explains(state any, c *linearCall) (bool, any)
}

// maxClasses is how many kinds of unknown calls that ask the same are kept in order.
const maxClasses = 6

// linearState is an object's state with what the search needs.
type linearState struct {
	object any
	// known is how many calls of known outcome have been placed, and taken how many unknown
	// ones of each class have taken effect.
	known int
	taken [maxClasses]int32
}

// question is what a call asks.
type question struct {
	kind                          history.Kind
	id                            string
	count, value, low, high, last int64
	expected                      int64
	hasExpected, force, forget    bool
}

func questionOf(c *linearCall) question {
	q := question{
		kind: c.Kind, id: c.ID, count: count(&c.Op), value: c.Value, low: c.Low, high: c.High, last: c.Last,
		hasExpected: c.Expected != nil, force: c.Force, forget: c.Forget,
	}
	if q.hasExpected {
		q.expected = *c.Expected
	}
	return q
}

// modelOf is the model of one object and its calls, or why there is none.
func modelOf(key objectKey, calls []*linearCall) (m porcupine.Model, why string) {
	var o object
	switch key.what {
	case "identity":
		o, why = newIdentityObject(calls)
	case "id":
		o = idObject{}
	default:
		o, why = newHiLoObject(calls)
	}
	known := 0
	classes := make(map[question]int)
	var orders [maxClasses]int
	for _, c := range calls {
		if !c.unknown() {
			known++
			continue
		}
		q := questionOf(c)
		class, seen := classes[q]
		if !seen {
			class = len(classes)
			classes[q] = class
		}
		if c.class = class; class < maxClasses {
			c.order = orders[class]
			orders[class]++
		}
	}
	return porcupine.Model{
		Init: func() any { return linearState{object: o.begin()} },
		Step: func(state, input, _ any) (bool, any) {
			return step(o, known, state.(linearState), input.(*linearCall))
		},
		DescribeOperation: func(input, _ any) string { return describe(input.(*linearCall)) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state.(linearState).object) },
	}, why
}

// step places one call more. Once all known calls are placed, what is left never
// happened.
func step(o object, known int, s linearState, c *linearCall) (ok bool, after linearState) {
	after = s
	if !c.unknown() {
		after.known++
		ok, after.object = o.serve(s.object, c)
		return ok, after
	}
	if s.known == known {
		return true, s
	}
	if c.class < maxClasses {
		if int(s.taken[c.class]) != c.order {
			return false, s
		}
		after.taken[c.class]++
	}
	ok, after.object = o.explains(s.object, c)
	return ok, after
}

// describe is a call on Porcupine's page.
func describe(c *linearCall) string {
	op := c.Op
	op.Database, op.Name, op.Node, op.Call, op.Return, op.Client = "", "", "", 0, 0, 0
	return fmt.Sprintf("%d: %s", c.pos, op.AppendJSON(nil))
}

// idObject is an id that belongs to no identity: it is claimed or it is not.
type idObject struct{}

func (idObject) begin() any { return false }

func (idObject) serve(state any, c *linearCall) (bool, any) {
	claim := c.Kind == history.Claim
	return state.(bool) != claim, claim
}

func (o idObject) explains(state any, c *linearCall) (bool, any) { return o.serve(state, c) }

// hiloState is a HiLo tag: the highest number reserved, and the highest that ever ended a
// range. Above max there may be a range whose answer was lost, of unknown length.
type hiloState struct {
	max, peak int64
	lost      bool
}

// stands says whether the counter may stand at a value.
func (s hiloState) stands(value int64) bool {
	if s.lost {
		return value > s.max
	}
	return value == s.max
}

// hiloObject is a HiLo tag, with what its callers saw in the whole history.
type hiloObject struct {
	// highs are where ranges end, ascending; lows are, for each, the lowest beginning of
	// the ranges from there on.
	highs, lows []int64
	// stops are the values at which others than those who asked for a range saw the counter.
	stops []int64
}

func newHiLoObject(calls []*linearCall) (o *hiloObject, why string) {
	o = &hiloObject{}
	var ranges []history.Block
	for _, c := range calls {
		switch {
		case c.unknown():
		case c.Reserve:
			// The counter gave it to the node, unseen and long before.
			return o, "ranges come from a node's reserve"
		case c.Kind == history.Range:
			ranges = append(ranges, history.Block{First: c.Low, Last: c.High})
		case c.Kind == history.Return && c.Returned:
			o.stops = append(o.stops, c.High)
		case c.Kind == history.Set && c.Expected != nil:
			o.stops = append(o.stops, *c.Expected)
		}
	}
	slices.Sort(o.stops)
	slices.SortFunc(ranges, func(a, b history.Block) int { return cmp.Compare(a.Last, b.Last) })
	o.highs, o.lows = make([]int64, len(ranges)), make([]int64, len(ranges))
	lowest := int64(math.MaxInt64)
	for i := len(ranges) - 1; i >= 0; i-- {
		lowest = min(lowest, ranges[i].First)
		o.highs[i], o.lows[i] = ranges[i].Last, lowest
	}
	return o, ""
}

func (*hiloObject) begin() any { return hiloState{} }

func (*hiloObject) serve(state any, c *linearCall) (bool, any) {
	s := state.(hiloState)
	switch c.Kind {
	case history.Range:
		ok := s.stands(c.Low-1) && c.Low <= c.High && c.High > s.peak
		return ok, hiloState{max: c.High, peak: c.High}
	case history.Return:
		if !c.Returned {
			return true, s
		}
		ok := !s.lost && s.max == c.High && c.Last <= c.High && c.Result == c.Last
		return ok, hiloState{max: c.Last, peak: s.peak}
	case history.Set:
		ok := c.Expected != nil && s.stands(*c.Expected) && c.Result == c.Value
		return ok, hiloState{max: c.Value, peak: max(s.peak, c.Value)}
	default: // Merge
		s.max = max(s.max, c.Value)
		return true, s
	}
}

// explains: the numbers of a range whose answer was lost never come back, so no range
// that is still to come begins among them or below. A return explains
// that one does, or that the counter was seen lower, maybe after further returns.
func (o *hiloObject) explains(state any, c *linearCall) (bool, any) {
	s := state.(hiloState)
	next := o.lowestAfter(s.peak)
	switch c.Kind {
	case history.Range:
		seen := next < math.MaxInt64 || len(o.stops) > 0 && o.stops[len(o.stops)-1] > s.max
		return !s.lost && next > s.max+1 && seen, hiloState{max: s.max, peak: s.peak, lost: true}
	case history.Return:
		seen := next <= c.High || len(o.stops) > 0 && o.stops[0] < c.High
		return !s.lost && s.max == c.High && c.Last < c.High && seen, hiloState{max: c.Last, peak: s.peak}
	case history.Set:
		ok := c.Expected != nil && s.stands(*c.Expected) && c.Value > *c.Expected
		return ok, hiloState{max: c.Value, peak: max(s.peak, c.Value)}
	default:
		return c.Value > s.max, hiloState{max: c.Value, peak: s.peak, lost: s.lost}
	}
}

// lowestAfter is the lowest beginning of the ranges that end above peak: of those that
// are still to come, because each range ends above all before it.
func (o *hiloObject) lowestAfter(peak int64) int64 {
	if i, _ := slices.BinarySearch(o.highs, peak+1); i < len(o.lows) {
		return o.lows[i]
	}
	return math.MaxInt64
}

// identityState is an identity: the last value used, the claimed ones, and those that
// were claimed when the counter passed them, and released after that.
type identityState struct {
	last           int64
	claimed, freed values
}

// identityObject is an identity, with what its callers saw in the whole history. On a
// name that is set back a value may come again, so there the rest is empty.
type identityObject struct {
	setBack bool
	// given are the values that callers were given, ascending, and stops the values at
	// which callers saw the counter.
	given []history.Block
	stops []int64
	// claims and releases count the calls that took, or may have taken, effect on a value.
	claims, releases map[int64]int
}

func newIdentityObject(calls []*linearCall) (o *identityObject, why string) {
	o = &identityObject{claims: make(map[int64]int), releases: make(map[int64]int)}
	for _, c := range calls {
		switch {
		case c.Kind == history.Claim:
			o.claims[c.Value]++
		case c.Kind == history.Release:
			o.releases[c.Value]++
		case c.Force || c.Forget:
			o.setBack = true
		case c.unknown():
		case c.Kind == history.Next:
			o.given = append(o.given, c.Blocks...)
			if len(c.Blocks) > 0 {
				o.stops = append(o.stops, c.Blocks[len(c.Blocks)-1].Last)
			}
		default:
			o.stops = append(o.stops, c.Result)
		}
	}
	if o.setBack && len(o.claims) > 0 {
		return o, "ids are claimed of a name that is set back"
	}
	slices.SortFunc(o.given, func(a, b history.Block) int { return cmp.Compare(a.First, b.First) })
	slices.Sort(o.stops)
	return o, ""
}

func (*identityObject) begin() any { return identityState{} }

// pieces is how many blocks an answer has at most; one with so many may skip values.
const pieces = 64

func (o *identityObject) serve(state any, c *linearCall) (bool, any) {
	s := state.(identityState)
	switch c.Kind {
	case history.Next:
		if len(c.Blocks) >= pieces {
			ok := c.Blocks[0].First > s.last
			s.last = c.Blocks[len(c.Blocks)-1].Last
			return ok, s
		}
		blocks, last := s.take(count(&c.Op))
		s.last = last
		return slices.Equal(blocks, c.Blocks), s
	case history.Get:
		return c.Result == s.last, s
	case history.Delete:
		ok := c.Result == s.last
		if c.Forget {
			s.last = 0
		}
		return ok, s
	case history.Seed:
		ok, after := s.seed(c)
		return ok && c.Result == after.last, after
	default:
		return s.claim(c)
	}
}

func (o *identityObject) explains(state any, c *linearCall) (bool, any) {
	s := state.(identityState)
	ok, after := true, s
	switch c.Kind {
	case history.Next:
		_, after.last = s.take(count(&c.Op))
	case history.Seed:
		ok, after = s.seed(c)
	case history.Get:
		return false, s
	case history.Delete:
		if !c.Forget {
			return false, s // it changes no value
		}
		after.last = 0
	case history.Claim:
		ok, after = s.claim(c)
		hole := !o.wasGiven(c.Value) && len(o.stops) > 0 && c.Value < o.stops[len(o.stops)-1]
		return ok && (hole || o.releases[c.Value] > 0), after
	default:
		ok, after = s.claim(c)
		return ok && (o.wasGiven(c.Value) || o.claims[c.Value] > 1), after
	}
	return ok && (o.setBack || o.passes(s.last, after.last)), after
}

// passes says whether the counter can have moved from one value to another in one call
// whose answer is not known: nobody was given a value between, nor saw the counter there.
func (o *identityObject) passes(from, to int64) bool {
	above := func(v, from int64) int {
		if v <= from {
			return -1
		}
		return 1
	}
	g, _ := slices.BinarySearchFunc(o.given, from, func(b history.Block, from int64) int { return above(b.First, from) })
	if g < len(o.given) && o.given[g].First <= to {
		return false
	}
	i, _ := slices.BinarySearchFunc(o.stops, from, above)
	return i < len(o.stops) && o.stops[i] >= to && to > from
}

func (o *identityObject) wasGiven(value int64) bool {
	i, found := slices.BinarySearchFunc(o.given, value, func(b history.Block, v int64) int { return cmp.Compare(b.First, v) })
	return found || i > 0 && o.given[i-1].Last >= value
}

// take is the next n values that are not claimed, and the last of them.
func (s identityState) take(n int64) (blocks []history.Block, last int64) {
	last = s.last
	for n > 0 {
		claimed := s.claimed.above(last)
		if some := min(n, claimed-last-1); some > 0 {
			blocks = append(blocks, history.Block{First: last + 1, Last: last + some})
			last += some
			n -= some
		}
		if n > 0 {
			last = claimed
		}
	}
	return blocks, last
}

func (s identityState) seed(c *linearCall) (bool, identityState) {
	if c.Expected != nil && *c.Expected != s.last {
		return false, s
	}
	if c.Force {
		s.last = c.Value
	} else {
		s.last = max(s.last, c.Value)
	}
	return true, s
}

// claim claims or releases a value: one that was not issued, or that the counter stepped
// over and that was released.
func (s identityState) claim(c *linearCall) (bool, identityState) {
	v := c.Value
	switch claimed := s.claimed.has(v); {
	case c.Kind == history.Release && claimed:
		s.claimed = s.claimed.without(v)
		if v <= s.last {
			s.freed = s.freed.with(v)
		}
		return true, s
	case c.Kind == history.Claim && !claimed && (v > s.last || s.freed.has(v)):
		s.claimed, s.freed = s.claimed.with(v), s.freed.without(v)
		return true, s
	}
	return false, s
}

// values is a set of numbers that can be compared: eight bytes for each, ascending.
type values string

const valueSize = 8

func (v values) at(i int) int64 {
	var n uint64
	for _, b := range []byte(v[i*valueSize : (i+1)*valueSize]) {
		n = n<<8 | uint64(b)
	}
	return int64(n)
}

// find is the place of the first value that is not below n.
func (v values) find(n int64) int {
	low, high := 0, len(v)/valueSize
	for low < high {
		if mid := (low + high) / 2; v.at(mid) < n {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (v values) has(n int64) bool {
	i := v.find(n)
	return i*valueSize < len(v) && v.at(i) == n
}

// above is the first value above n.
func (v values) above(n int64) int64 {
	if i := v.find(n + 1); i*valueSize < len(v) {
		return v.at(i)
	}
	return math.MaxInt64
}

func (v values) with(n int64) values {
	if v.has(n) {
		return v
	}
	var b [valueSize]byte
	for i := range b {
		b[i] = byte(uint64(n) >> (8 * (valueSize - 1 - i)))
	}
	i := v.find(n) * valueSize
	return v[:i] + values(b[:]) + v[i:]
}

func (v values) without(n int64) values {
	if !v.has(n) {
		return v
	}
	i := v.find(n) * valueSize
	return v[:i] + v[i+valueSize:]
}
