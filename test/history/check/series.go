package check

import (
	"math"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// seriesCounter judges the calls on one series of document numbers, of one scope, whose
// numbers never change hands.
//
// A key got its number at one moment: after it was asked for first, and before it was
// answered first. The numbers alone order these moments. The order is right if and only if
// no lower number was asked for after a higher one was answered, and if each number that
// no key is known to have is explained by a key of its own whose calls had unknown
// outcomes. All of that is decided exactly, and of the states what two answers contradict.
type seriesCounter struct {
	keys map[string]*seriesKey
	// wrong are answers that are wrong by themselves.
	wrong findings
}

// seriesKey is what is known of a key.
type seriesKey struct {
	key string
	// asked is when its number was asked for first, answered when it was known first.
	asked, answered int64
	number          int64 // 0 is unknown.
	pos             int
	// ends are the calls that may have ended the number, by the state that they ask for.
	ends map[string][]seriesEnd
}

// seriesEnd is a call that ends a number.
type seriesEnd struct {
	call, ret int64
	pos       int
	ok        bool
}

func (c *seriesCounter) of(key string) *seriesKey {
	if c.keys == nil {
		c.keys = map[string]*seriesKey{}
	}
	k := c.keys[key]
	if k == nil {
		k = &seriesKey{key: key, asked: math.MaxInt64, answered: math.MaxInt64, ends: map[string][]seriesEnd{}}
		c.keys[key] = k
	}
	return k
}

// add takes a call in that did not fail.
func (c *seriesCounter) add(op *history.Op, pos int) {
	k := c.of(op.ID)
	switch op.Kind {
	case history.Take:
		k.asked = min(k.asked, op.Call)
	case history.End:
		k.ends[op.Tag] = append(k.ends[op.Tag], seriesEnd{op.Call, op.Return, pos, op.Outcome == history.OK})
	}
	if op.Outcome != history.OK {
		return
	}
	if k.number != 0 && k.number != op.Result {
		c.wrong.violation("series/changed", op.ID, []int{k.pos, pos}, "has number %d, and %d", k.number, op.Result)
	}
	if k.number == 0 {
		k.number, k.pos = op.Result, pos
	}
	k.answered = min(k.answered, op.Return)
	if op.Kind != history.End {
		c.wrong.state(op, pos, k)
	}
}

// state finds a state that no call can have led to, or that was over.
func (f *findings) state(op *history.Op, pos int, k *seriesKey) {
	if op.Tag == "" {
		return
	}
	for state, ends := range k.ends {
		for _, e := range ends {
			if state != op.Tag && e.ok && e.ret < op.Call {
				f.violation("series/state", op.ID, []int{e.pos, pos}, "is %s, after it was %s", op.Tag, state)
			}
		}
	}
}

// check judges the series, and returns how many numbers were given for certain.
func (c *seriesCounter) check(where string, f *findings) (numbers int64) {
	for _, v := range c.wrong.violations {
		f.violation(v.Rule, where+" "+v.Where, v.Ops, "%s", v.Why)
	}
	var known, unknown []*seriesKey
	for _, k := range c.keys {
		k.contradicts(where, f)
		switch {
		case k.number == 0 && k.asked < math.MaxInt64:
			unknown = append(unknown, k)
		case k.number == 0:
		case k.asked == math.MaxInt64:
			f.violation("series/nobody", where+" "+k.key, []int{k.pos}, "has number %d, and nobody asked for one", k.number)
		default:
			known = append(known, k)
		}
	}
	slices.SortFunc(known, func(a, b *seriesKey) int { return int(a.number - b.number) })
	slices.SortFunc(unknown, func(a, b *seriesKey) int { return int(a.asked - b.asked) })
	c.order(where, known, unknown, f)
	return int64(len(known))
}

// contradicts finds two states that one number was answered to have for good.
func (k *seriesKey) contradicts(where string, f *findings) {
	certain := func(state string) int {
		for _, e := range k.ends[state] {
			if e.ok {
				return e.pos
			}
		}
		return 0
	}
	if a, b := certain("confirmed"), certain("voided"); a != 0 && b != 0 {
		f.violation("series/state", where+" "+k.key, []int{a, b}, "was confirmed, and voided")
	}
}

// order finds numbers that were given twice, in a wrong order, or to nobody.
func (c *seriesCounter) order(where string, known, unknown []*seriesKey, f *findings) {
	// By when the numbers above each one are known to have been given.
	until := make([]int64, len(known)+1)
	until[len(known)] = math.MaxInt64
	for i := len(known) - 1; i >= 0; i-- {
		until[i] = min(until[i+1], known[i].answered)
	}
	missing, last := 0, int64(0)
	for i, k := range known {
		if k.number <= last {
			f.violation("series/twice", where, []int{known[max(i-1, 0)].pos, k.pos}, "number %d is that of two keys, or below 1", k.number)
			continue
		}
		missing += int(k.number - last - 1)
		explained, _ := slices.BinarySearchFunc(unknown, until[i], func(u *seriesKey, by int64) int {
			if u.asked <= by {
				return -1
			}
			return 1
		})
		if missing > explained {
			f.violation("series/hole", where, []int{k.pos}, "below number %d are %d that nobody got, and %d calls of unknown outcome",
				k.number, missing, explained)
			return
		}
		if k.asked > until[i+1] {
			f.violation("series/order", where, []int{k.pos}, "number %d was asked for after a higher one was answered", k.number)
		}
		last = k.number
	}
}
