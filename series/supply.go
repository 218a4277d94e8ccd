package series

import (
	"fmt"
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// open yields the allotments of a scope that are not used up and have not ended by another one, and how many numbers
// each has left. Some may be past.
func (c *scope) open(yield func(a *allotment, left int64) bool) {
	ranges := c.allotted.ranges
	for i := range slices.Backward(ranges) {
		if ranges[i].began() {
			ranges = ranges[i:]
			break
		}
	}
	for i := range ranges {
		a, left := &ranges[i], ranges[i].size()
		if a.began() {
			left -= c.last - a.starts + 1
		}
		if left > 0 && !yield(a, left) {
			return
		}
	}
}

// supply returns how many numbers the allotments of a scope can give today, and how many these have in all.
func (c *scope) supply(today format.Date) (left, of int64) {
	for a, n := range c.open {
		if today <= a.until {
			left, of = left+n, of+a.size()
		}
	}
	return left, of
}

// reach returns the number that a place has once the places up to it are given today, for documents of a date. It finds
// why the allotments of the scope cannot give so many.
func (c *scope) reach(place int64, today, date format.Date) (number int64, err error) {
	if place <= c.last || c.allotted.none() {
		return c.numberOf(place), nil
	}
	more, field, why := place-c.last, "allotments", "are used up"
	for a, left := range c.open {
		switch {
		case today > a.until:
			field, why = "allotments.until", fmt.Sprintf("ended: %s on %s", a.name(), a.until)
		case date > a.until:
			return 0, c.afterEnd(a, date)
		case left >= more:
			return a.to + more - left, nil
		default:
			more -= left
		}
	}
	if given := place - c.last - more; given > 0 {
		field, why = "keys", fmt.Sprintf("have %d left", given)
	}
	return 0, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, field, "the allotments of %s %s", name(c.values), why)
}

// afterEnd means that a document's date is after the end of an allotment.
func (c *scope) afterEnd(a *allotment, date format.Date) error {
	return invalid("date", fmt.Sprintf("%s is after %s, when the allotment %s of %s ends", date, a.until, a.name(), name(c.values)))
}

// furthest returns the place that a number of the books has at most: documents may have all allotted numbers below
// it. It returns false if no allotment has it.
func (c *scope) furthest(number int64) (place int64, ok bool) {
	if c.allotted.none() {
		return number, true
	}
	place = c.last
	if number <= c.lastNumber() {
		return place, true
	}
	for a, left := range c.open {
		if number <= a.to {
			return place + left - (a.to - number), number >= a.from
		}
		place += left
	}
	return place, false
}

// addAllotted is add, in the first allotment that is neither used up nor past. There is one.
func (c *scope) addAllotted(today format.Date) int64 {
	if c.allotted.none() {
		return c.add()
	}
	for a := range c.open {
		if today > a.until {
			continue
		}
		if !a.began() {
			c.begin(a.from)
		}
		break
	}
	return c.add()
}

// begin has the allotment with a first number begin.
func (c *scope) begin(from int64) {
	c.allot(func(ranges []allotment) []allotment {
		i := slices.IndexFunc(ranges, func(a allotment) bool { return a.from == from })
		ranges[i].starts = c.last + 1
		return ranges
	}, 0)
}
