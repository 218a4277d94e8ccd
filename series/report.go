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
	// LastDate is the greatest date of a number that is not voided, and FirstDate without one.
	LastDate format.Date
	Closed   bool
	// Before is the last number from before this series; 0 if the scope begins at 1.
	Before int64
	// Open counts the overdue ones too. Before, Open, Confirmed, Voided, Released and Unknown
	// together are Last.
	Open, Overdue, Confirmed, Voided, Released, Unknown int64
}

// Report returns what scopes have in the order in which they began: up to limit after the first skip.
func (v *View) Report(skip, limit int) []Summary {
	var all []Summary
	for c := range v.scopes.from(skip) {
		if len(all) == limit {
			break
		}
		all = append(all, v.summary(c))
	}
	return all
}

func (v *View) summary(c *scope) Summary {
	count, overdue := v.count(c)
	return Summary{
		Scope: c.values, Last: c.last, LastDate: v.lastDate(c), Closed: c.closed, Before: c.offset, Overdue: overdue,
		Open: count[Open], Confirmed: count[Confirmed], Voided: count[Voided], Released: count[Released], Unknown: count[Unknown],
	}
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
	text, _ := v.format.Format(r.date, c.given(), number)
	return &raftlogv1.SeriesNumber{
		Key: r.key(), Label: r.label(), Scope: c.values, Number: number, Text: text, State: uint32(state),
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
		if c == nil || n.GetNumber() != c.offset+1 || last != nil && n.GetDate() < newest {
			continue
		}
		if before := x.scopes.periodBefore(c); before != nil {
			last, newest = &raftlogv1.SeriesLast{Scope: before.values, Last: before.last}, n.GetDate()
		}
	}
	return last
}

// maxListed is how many numbers one call looks at: it holds up all others.
const maxListed = 1_000

// Numbers returns up to limit numbers of a scope above one, ascending: those in a state,
// or all if the state is 0. It looks at 1,000 numbers at most, and goes on above next; 0
// is the end. The error is *Error.
func (v *View) Numbers(values []string, state State, above int64, limit int) (
	all []*raftlogv1.SeriesNumber, next int64, err error,
) {
	c, err := v.scopes.find(values)
	if err != nil {
		return nil, 0, err
	}
	from := min(max(above, c.offset), c.last)
	last := min(c.last, from+maxListed)
	for n := from + 1; n <= last; n++ {
		if is, _ := v.stateOf(c.at(n)); state != 0 && is != state {
			continue
		}
		if len(all) == limit {
			return all, n - 1, nil
		}
		all = append(all, v.number(c, n))
	}
	if last < c.last {
		return all, last, nil
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
	if c == nil || parsed.Number <= c.offset || parsed.Number > c.last {
		return nil, false, nil
	}
	n := v.number(c, parsed.Number)
	// Dates of one scope have several texts where the format shows more of them.
	return n, docid.Fold(n.GetText()) == docid.Fold(text), nil
}
