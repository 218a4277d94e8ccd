package check

import (
	"slices"

	"github.com/idnode/idnode/test/history"
)

// idRange is numbers that one call was answered with.
type idRange struct {
	first, last int64
	call, ret   int64
	pos         int32
}

// rising sorts the ranges by their numbers. It calls twice for each two that
// share a number, and late for each call that was made after one with higher
// numbers had returned: numbers that only rise are never issued in that order.
// Unlike values of an identity they may leave holes.
func rising(ranges []idRange, twice, late func(before, after idRange)) {
	slices.SortFunc(ranges, func(a, b idRange) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return int(a.pos) - int(b.pos)
	})
	for i, widest := 1, 0; i < len(ranges); i++ {
		if ranges[i].first <= ranges[widest].last {
			twice(ranges[widest], ranges[i])
		}
		if ranges[i].last > ranges[widest].last {
			widest = i
		}
	}
	if late == nil {
		return
	}
	soonest := idRange{ret: history.Never}
	for i := len(ranges) - 1; i >= 0; i-- {
		if ranges[i].call > soonest.ret {
			late(soonest, ranges[i])
		}
		if ranges[i].ret < soonest.ret {
			soonest = ranges[i]
		}
	}
}
