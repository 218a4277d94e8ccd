package check

import (
	"slices"

	"github.com/idnode/idnode/test/history"
)

// claims are the claimed values of one identity.
type claims struct {
	byValue map[int64]int
	// values is ascending once sort was called.
	values []claimed
}

// claimed is what happened to one value by hand.
type claimed struct {
	value    int64
	claims   []claimCall
	releases []claimCall
}

// claimCall is a claim or a release.
type claimCall struct {
	call, ret int64
	pos       int
	ok        bool
}

// add takes a claim or a release in that did not fail. Only ids of the form
// name/number matter for identities; others have no name.
func (c *claims) add(op *history.Op, pos int) {
	if op.Name == "" {
		return
	}
	if c.byValue == nil {
		c.byValue = make(map[int64]int)
	}
	i, known := c.byValue[op.Value]
	if !known {
		i = len(c.values)
		c.byValue[op.Value] = i
		c.values = append(c.values, claimed{value: op.Value})
	}
	one := claimCall{op.Call, op.Return, pos, op.Outcome == history.OK}
	if op.Kind == history.Claim {
		c.values[i].claims = append(c.values[i].claims, one)
	} else {
		c.values[i].releases = append(c.values[i].releases, one)
	}
}

// sort orders the values; byValue is of no use afterwards.
func (c *claims) sort() {
	slices.SortFunc(c.values, func(a, b claimed) int {
		if a.value < b.value {
			return -1
		}
		return 1
	})
	c.byValue = nil
}

// from returns the values from one on.
func (c *claims) from(value int64) []claimed {
	i, _ := slices.BinarySearchFunc(c.values, value, func(a claimed, v int64) int {
		switch {
		case a.value < v:
			return -1
		case a.value > v:
			return 1
		}
		return 0
	})
	return c.values[i:]
}

// maybe says whether the value can have been claimed at some moment up to a time.
func (c *claims) maybe(value, until int64) bool {
	list := c.from(value)
	return len(list) > 0 && list[0].value == value && list[0].maybe(until)
}

func (c *claimed) maybe(until int64) bool {
	return slices.ContainsFunc(c.claims, func(one claimCall) bool { return one.call <= until })
}

// always says whether the value was claimed for certain when the counter passed
// it, on a name that was never set back: a later claim would have been refused.
func (c *claimed) always(exact bool) bool {
	return exact && len(c.releases) == 0 && slices.ContainsFunc(c.claims, func(one claimCall) bool { return one.ok })
}

// heldDuring returns a claim that stood for certain while a call took effect.
func (c *claimed) heldDuring(e entry, exact bool) (claimCall, bool) {
	for _, one := range c.claims {
		if !one.ok {
			continue
		}
		if c.always(exact) {
			return one, true
		}
		released := slices.ContainsFunc(c.releases, func(r claimCall) bool {
			return r.call <= e.ret && (!r.ok || r.ret >= one.call)
		})
		if one.ret < e.call && !released {
			return one, true
		}
	}
	return claimCall{}, false
}

// releasedBehind says whether the value may have been claimed up to a time, so that
// the counter stepped over it, and released before it was claimed again.
func (c *claimed) releasedBehind(passed int64, again claimCall) bool {
	before := slices.ContainsFunc(c.claims, func(one claimCall) bool { return one.pos != again.pos && one.call <= passed })
	return before && slices.ContainsFunc(c.releases, func(r claimCall) bool { return r.call <= again.ret })
}

// twice returns two claims of a value that was never released.
func (c *claimed) twice() (a, b int, ok bool) {
	if len(c.releases) > 0 {
		return 0, 0, false
	}
	for _, one := range c.claims {
		switch {
		case !one.ok:
		case a == 0:
			a = one.pos
		default:
			return a, one.pos, true
		}
	}
	return 0, 0, false
}
