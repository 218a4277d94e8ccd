package series

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Period is what a scope, or a part of it, has of the dates of a period.
type Period struct {
	Scope []string
	// First and Last are the first and the last number.
	First, Last *raftlogv1.SeriesNumber
	// Count is how many numbers are in each state.
	Count [Unknown + 1]int64
	// Voided are the voided numbers. Those that follow each other, and have one reason, are one range.
	Voided []VoidedRange
}

// VoidedRange is numbers that were voided for one reason.
type VoidedRange struct{ First, Last *raftlogv1.SeriesNumber }

// PeriodSome looks at up to limit numbers and scopes from a cursor on, and returns what scopes have of the dates from one to
// another, and where to go on; false at the end. The series may change between two calls; one that began anew is
// read from its beginning.
func (v *View) PeriodSome(at VerifyCursor, from, to format.Date, limit int) (parts []Period, next VerifyCursor, more bool) {
	if at.since != v.since {
		at = VerifyCursor{since: v.since}
	}
	for ; limit > 0 && at.scope < v.scopes.len(); limit-- {
		c := v.scopes.at(int32(at.scope))
		p, last, looked := v.period(c, at.number, from, to, limit)
		limit -= looked
		if p.First != nil {
			parts = append(parts, p)
		}
		if at.number = last; last == c.last {
			at = VerifyCursor{since: v.since, scope: at.scope + 1}
		}
	}
	return parts, at, at.scope < v.scopes.len()
}

// period returns what up to limit numbers of a scope above a place have of a period, the last of them, and how many there were.
func (v *View) period(c *scope, above int64, from, to format.Date, limit int) (p Period, last int64, looked int) {
	p, last = Period{Scope: c.values}, c.last
	if c.period > 0 && c.begins > to {
		return p, last, 0
	}
	newest := int64(0)
	for n, r := range c.above(above) {
		if looked == limit {
			last = above
			break
		}
		above, looked = n, looked+1
		if r.date < from || r.date > to {
			continue
		}
		if newest = n; p.First == nil {
			p.First = v.number(c, n)
		}
		state, _ := v.stateOf(r)
		if p.Count[state]++; state == Voided {
			p.void(v.number(c, n))
		}
	}
	if newest > 0 {
		p.Last = v.number(c, newest)
	}
	return p, last, looked
}

// void adds a voided number to the last range, or to a new one.
func (p *Period) void(n *raftlogv1.SeriesNumber) {
	if i := len(p.Voided) - 1; i >= 0 && p.Voided[i].Last.GetNumber() == n.GetNumber()-1 && p.Voided[i].First.GetReason() == n.GetReason() {
		p.Voided[i].Last = n
		return
	}
	p.Voided = append(p.Voided, VoidedRange{n, n})
}
