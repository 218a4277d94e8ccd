package series

import (
	"slices"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Summary is what a scope has.
type Summary struct {
	Scope []string
	Last  int64
	// LastDate is the greatest date of a number that is not voided or released, and FirstDate without one.
	LastDate format.Date
	Closed   bool
	// Before is how many numbers from before this series were not entered; 0 if the scope begins at 1.
	Before int64
	// Left is how many numbers can still be given today, beside released ones; WithoutEnd if they end nowhere.
	Left int64
	// Allotments are the ranges of numbers that were allotted to the scope.
	Allotments []Allotment
	// Open counts the overdue ones too. Before, Open, Confirmed, Voided, Released and Unknown
	// together are Last, in a scope without allotments.
	Open, Overdue, Confirmed, Voided, Released, Unknown int64
}

// WithoutEnd is what is left of numbers without an end.
const WithoutEnd = -1

// Allotment is a range of numbers that was allotted to a scope.
type Allotment struct {
	From, To int64
	// Until is the last day on which it gives numbers; LastDate is without end.
	Until format.Date
	Note  string
	Given int64
	// Left is how many numbers it can still give today.
	Left int64
}

// Report returns what scopes have today in the order in which they began: up to limit after the first skip.
func (v *View) Report(skip, limit int, today format.Date) []Summary {
	var all []Summary
	for c := range v.scopes.from(skip) {
		if len(all) == limit {
			break
		}
		all = append(all, v.summary(c, today))
	}
	return all
}

func (v *View) summary(c *scope, today format.Date) Summary {
	count, overdue := v.count(c)
	return Summary{
		Scope: c.values, Last: c.lastNumber(), Left: v.left(c, today), Allotments: c.allotments(today),
		LastDate: v.lastDate(c), Closed: c.closed, Before: c.offset - c.entered.len(), Overdue: overdue,
		Open: count[Open], Confirmed: count[Confirmed], Voided: count[Voided], Released: count[Released], Unknown: count[Unknown],
	}
}

// left returns how many numbers a scope can still give today.
func (v *View) left(c *scope, today format.Date) int64 {
	most := v.definition.most(v.format, c.given())
	switch {
	case c.closed:
		return 0
	case !c.allotted.none():
		left, _ := c.supply(today)
		return left
	case most == maxNumber:
		return WithoutEnd
	}
	return max(0, most-c.last)
}

// WhoHas returns what is known of a key's number.
func (v *View) WhoHas(key string) (*raftlogv1.SeriesNumber, bool) {
	at := v.index.find(key)
	if at == 0 {
		return nil, false
	}
	return v.number(v.scopes.at(at.scope()), at.number()), true
}

// number returns what is known of a number.
func (v *View) number(c *scope, number int64) *raftlogv1.SeriesNumber {
	r := c.at(number)
	state, reason := v.stateOf(r)
	// The date and the values were checked when the number was given.
	is := c.numberOf(number)
	text, _ := v.format.Format(r.date, c.given(), is)
	return &raftlogv1.SeriesNumber{
		Key: r.key(), Label: r.label(), Scope: c.values, Number: is, Text: text, Note: c.allotted.note(number), State: uint32(state),
		Overdue: state == Open && r.ended(v.now), Date: int32(r.date), TakenUnixNano: r.taken, ExpiresUnixNano: r.expires, Reason: reason,
	}
}

// Before returns, where the first number of a scope is among some, the last one so far of the newest
// period before it with the same values; nil if there is none.
func (x *contents) Before(numbers []*raftlogv1.SeriesNumber) (last *raftlogv1.SeriesLast) {
	var c *scope
	var newest int32
	for _, n := range numbers {
		if c == nil || !slices.Equal(c.values, n.GetScope()) {
			c = x.scopes.lookUp(n.GetScope())
		}
		if c == nil || n.GetNumber() != c.numberOf(c.offset+1) || last != nil && n.GetDate() < newest {
			continue
		}
		if before := x.scopes.periodBefore(c); before != nil {
			last, newest = &raftlogv1.SeriesLast{Scope: before.values, Last: before.lastNumber()}, n.GetDate()
		}
	}
	return last
}

// maxListed is how many numbers one call looks at: it holds up all others.
const maxListed = 1_000

// Numbers returns up to limit numbers of a scope above a place, ascending: those in a state,
// or all if the state is 0. It looks at 1,000 numbers at most, and goes on above next; 0
// is the end. The error is *Error.
func (v *View) Numbers(values []string, state NumberState, above int64, limit int) (
	all []*raftlogv1.SeriesNumber, next int64, err error,
) {
	c, err := v.scopes.find(values)
	if err != nil {
		return nil, 0, err
	}
	looked := 0
	for n, r := range c.above(above) {
		is, _ := v.stateOf(r)
		wanted := state == 0 || is == state
		if looked == maxListed || wanted && len(all) == limit {
			return all, above, nil
		}
		if above, looked = n, looked+1; wanted {
			all = append(all, v.number(c, n))
		}
	}
	return all, 0, nil
}

// Find returns what is known of the number with a text. The error is a *format.Error for a
// text that does not match the format; false means that the number was not taken.
func (v *View) Find(text string) (*raftlogv1.SeriesNumber, bool, error) {
	parsed, err := v.format.Parse(text)
	if err != nil {
		return nil, false, err
	}
	c := v.scopes.lookUp(parsed.Scope)
	if c == nil || c.placeOf(parsed.Number) == 0 {
		return nil, false, nil
	}
	n := v.number(c, c.placeOf(parsed.Number))
	// Dates of one scope have several texts where the format shows more of them.
	return n, docid.Fold(n.GetText()) == docid.Fold(text), nil
}
