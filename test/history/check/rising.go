package check

import (
	"slices"

	"github.com/idnode/idnode/test/history"
)

// span is numbers that one call was answered with.
type span struct {
	first, last int64
	call, ret   int64
	pos         int32
}

// rising sorts the spans by their numbers. It calls twice for each two that
// share a number, and late for each call that was made after one with higher
// numbers had returned: numbers that only rise are never issued in that order.
// Unlike values of an identity they may leave holes.
func rising(spans []span, twice, late func(before, after span)) {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return int(a.pos) - int(b.pos)
	})
	for i, widest := 1, 0; i < len(spans); i++ {
		if spans[i].first <= spans[widest].last {
			twice(spans[widest], spans[i])
		}
		if spans[i].last > spans[widest].last {
			widest = i
		}
	}
	if late == nil {
		return
	}
	soonest := span{ret: history.Never}
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].call > soonest.ret {
			late(soonest, spans[i])
		}
		if spans[i].ret < soonest.ret {
			soonest = spans[i]
		}
	}
}
