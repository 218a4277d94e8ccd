package series

import (
	"fmt"
	"slices"

	"github.com/idnode/idnode/series/format"
)

// allotment is a range of numbers that an authority allotted to a scope.
type allotment struct {
	from, to int64
	// until is the last day on which it gives numbers; LastDate is without end.
	until format.Date
	note  string
	// starts is the place of its first number among those of the scope, as scope counts them. It is 0 before the
	// first is given.
	starts int64
}

// allotments are the ranges of a scope, ascending. They are replaced as a whole: frozen copies share them.
//
// Invariant: those that began have ascending starts, and the scope's last number is in the last of them. What begins
// ends the one before it for ever, used up or not; one that was passed over never begins.
type allotments struct {
	ranges []allotment
	// changes is how often somebody allotted a range or took one back.
	changes int64
}

func (a *allotment) size() int64 { return a.to - a.from + 1 }

func (a *allotment) began() bool { return a.starts > 0 }

// name is an allotment for people.
func (a *allotment) name() string { return fmt.Sprintf("%d to %d", a.from, a.to) }

// same reports whether two are one, whatever they gave.
func (a allotment) same(b allotment) bool {
	a.starts, b.starts = 0, 0
	return a == b
}

// in returns the allotment that has the number at a place; nil if none has.
func (a *allotments) in(place int64) *allotment {
	if a == nil {
		return nil
	}
	for i := range slices.Backward(a.ranges) {
		if r := &a.ranges[i]; r.began() && r.starts <= place {
			return r
		}
	}
	return nil
}

// none reports whether a scope gives all numbers.
func (a *allotments) none() bool { return a == nil || len(a.ranges) == 0 }

// numberOf returns the number at a place.
func (a *allotments) numberOf(place int64) int64 {
	if in := a.in(place); in != nil {
		return in.from + place - in.starts
	}
	return place
}

// numberOf returns the number at a place.
func (c *scope) numberOf(place int64) int64 { return c.allotted.numberOf(place) }

// placeOf returns the place of a number that was given; 0 if it was not.
func (c *scope) placeOf(number int64) int64 {
	place := number
	if !c.allotted.none() {
		for i := range c.allotted.ranges {
			if a := &c.allotted.ranges[i]; a.began() && number >= a.from {
				place = min(number, a.to+1) - a.from + a.starts
			}
		}
	}
	if place > c.last || c.numberOf(place) != number || c.at(place).state == 0 {
		return 0
	}
	return place
}

// lastNumber returns the last number that was given, or that from before the scope.
func (c *scope) lastNumber() int64 { return c.numberOf(c.last) }

// note returns that of the allotment of a place.
func (a *allotments) note(place int64) string {
	if in := a.in(place); in != nil {
		return in.note
	}
	return ""
}

// allotments returns the allotments, how many numbers they gave, and how many they can still give today.
func (c *scope) allotments(today format.Date) (all []Allotment) {
	if c.allotted.none() {
		return nil
	}
	end, ended := c.last+1, c.closed // Of the places of a range, and whether it is over.
	for i := range slices.Backward(c.allotted.ranges) {
		a := &c.allotted.ranges[i]
		shown := Allotment{From: a.from, To: a.to, Until: a.until, Note: a.note}
		if a.began() {
			shown.Given, end = end-a.starts, a.starts
		}
		if !ended && today <= a.until {
			shown.Left = a.size() - shown.Given
		}
		ended = ended || a.began()
		all = append(all, shown)
	}
	slices.Reverse(all)
	return all
}

// past reports whether the allotment of a place has ended on a date.
func (c *scope) past(place int64, date format.Date) bool {
	a := c.allotted.in(place)
	return a != nil && date > a.until
}

// newest reports whether the place above one is released, or in another allotment.
func (c *scope) newest(place int64) bool {
	return place == c.last || c.at(place+1).state == Released || c.allotted.in(place) != c.allotted.in(place+1)
}

// allot changes the allotments of a scope.
func (c *scope) allot(change func([]allotment) []allotment, changes int64) {
	next := &allotments{}
	if c.allotted != nil {
		next.ranges, next.changes = slices.Clone(c.allotted.ranges), c.allotted.changes
	}
	next.ranges, next.changes = change(next.ranges), next.changes+changes
	c.setAllotments(next)
}

func (c *scope) setAllotments(a *allotments) {
	c.hash.Remove(c.hashHeader())
	c.allotted = a
	c.hash.Add(c.hashHeader())
}

// equal reports whether two are one, and gave the same.
func (a *allotments) equal(b *allotments) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.changes == b.changes && slices.Equal(a.ranges, b.ranges)
}
