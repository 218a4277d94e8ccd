package series_test

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// modelRange is a range that was allotted to a scope.
type modelRange struct {
	from, to int64
	until    format.Date
	note     string
	given    int64
}

// next returns the next number and its range: the first range that is neither used up nor past, and behind which no other
// one has given numbers. It returns 0 if there is none.
func (c *modelScope) next(today format.Date) (int64, *modelRange) {
	if len(c.ranges) == 0 {
		return c.last() + 1, nil
	}
	for i, r := range c.ranges {
		ended := slices.ContainsFunc(c.ranges[i+1:], func(later *modelRange) bool { return later.given > 0 })
		if !ended && r.from+r.given <= r.to && today <= r.until {
			return r.from + r.given, r
		}
	}
	return 0, nil
}

// add gives a number.
func (c *modelScope) add(number int64, of *modelRange) *entry {
	if of != nil {
		of.given++
	}
	e := &entry{number: number, of: of}
	c.entries = append(c.entries, e)
	return e
}

// reach gives more numbers to see where that ends, and takes them back.
func (c *modelScope) reach(more int, q series.Request) (last int64, why string) {
	had := len(c.entries)
	for range more {
		number, of := c.next(q.Today)
		switch {
		case number == 0:
			why = "full"
		case of != nil && q.Date > of.until:
			why = fmt.Sprintf("date %s is after %s, when the allotment %d to %d of %s ends", q.Date, of.until, of.from, of.to,
				q.Date.String()[:4]+" "+c.branch)
		}
		if why != "" {
			break
		}
		c.add(number, of)
	}
	last = c.last()
	for _, e := range c.entries[had:] {
		if e.of != nil {
			e.of.given--
		}
	}
	c.entries = c.entries[:had]
	return last, why
}

// has returns a number that was given.
func (c *modelScope) has(number int64) *entry {
	for _, e := range c.all() {
		if e.number == number {
			return e
		}
	}
	return nil
}

// allotted reports whether a number may be in the books.
func (c *modelScope) allotted(number int64) bool {
	if len(c.ranges) == 0 || number <= c.last() {
		return true
	}
	return slices.ContainsFunc(c.ranges, func(r *modelRange) bool { return r.from <= number && number <= r.to })
}

// left counts what the scope can give, in all and by range.
func (c *modelScope) left(today format.Date) (left int64, of []series.Allotment) {
	if len(c.ranges) == 0 && !c.closed {
		return 99 - c.last(), nil
	}
	for i, r := range c.ranges {
		a := series.Allotment{From: r.from, To: r.to, Until: r.until, Note: r.note, Given: r.given}
		ended := c.closed || slices.ContainsFunc(c.ranges[i+1:], func(later *modelRange) bool { return later.given > 0 })
		if !ended && today <= r.until {
			a.Left = r.to + 1 - r.from - r.given
		}
		left, of = left+a.Left, append(of, a)
	}
	return left, of
}

func (m *model) allot(now int64, scope []string, a *modelRange, withdraw bool) string {
	name := scopeName(scope...)
	c := m.scopes[name]
	if c == nil {
		c = &modelScope{place: len(m.scopes), branch: scope[1]}
	}
	i := slices.IndexFunc(c.ranges, func(r *modelRange) bool { return r.from == a.from && r.to == a.to })
	switch {
	case withdraw && i < 0:
		return "allotment"
	case withdraw && c.ranges[i].given > 0:
		return "in use"
	case withdraw:
		c.ranges = slices.Delete(c.ranges, i, i+1)
		m.at(now)
		return ""
	case i >= 0 && c.ranges[i].until == a.until && c.ranges[i].note == a.note:
		return ""
	case !m.allows(scope[1]):
		return "values"
	case c.closed:
		return "closed"
	case a.from <= c.last(), a.to > 99:
		return "allotment"
	case a.to < a.from:
		return "allotments"
	}
	for _, r := range c.ranges {
		if a.from <= r.to && r.from <= a.to {
			return "allotments"
		}
	}
	c.ranges = append(c.ranges, a)
	slices.SortFunc(c.ranges, func(a, b *modelRange) int { return int(a.from - b.from) })
	m.scopes[name] = c
	m.at(now)
	return ""
}

// allotting are steps with which ranges are used up, and numbers of them given again.
var allotting = []func(*history){
	(*history).allot, (*history).allot, (*history).allot, (*history).take, (*history).take, (*history).giveBack,
	(*history).take, (*history).allot, (*history).take, (*history).giveBack, (*history).take, (*history).giveBack, (*history).take,
}

// giveBack releases the last numbers of each scope.
func (h *history) giveBack() {
	for _, name := range slices.Sorted(maps.Keys(h.m.scopes)) {
		all := h.m.scopes[name].entries
		for _, e := range all[max(0, len(all)-1-h.IntN(3)):] {
			if e.owner() != "" {
				h.endAs(1, []*raftlogv1.SeriesKey{{Key: e.key}})
			}
		}
	}
}

func (h *history) allot() {
	scope := []string{[]string{"2026", "2027"}[h.IntN(2)], h.branch()}
	last := int64(0)
	if c := h.m.scopes[scopeName(scope...)]; c != nil {
		last = c.last()
	}
	a := &modelRange{from: last + h.one(0, 1, 1, 2, 4, 7, 15), until: format.DateOf(2026, 12, 29) + format.Date(h.one(0, 1, 2, 99))}
	a.to, a.note = a.from+h.one(-1, 0, 1, 3, 3, 6), fmt.Sprint("code ", h.IntN(2))
	withdraw := h.IntN(4) == 0
	if c := h.m.scopes[scopeName(scope...)]; withdraw && c != nil && len(c.ranges) > 0 {
		*a = *c.ranges[h.IntN(len(c.ranges))]
		a.given = 0
	}
	m := &raftlogv1.SeriesAllot{Scope: scope, Withdraw: withdraw, Allotment: &raftlogv1.SeriesAllotment{
		From: a.from, To: a.to, Until: proto.Int32(int32(a.until)), Note: a.note,
	}}
	why := h.m.allot(h.now, scope, a, withdraw)
	h.log = append(h.log, fmt.Sprintf("%d: allot %v %+v, withdraw %t: %s", h.now, scope, *a, withdraw, why))
	if err := h.s.Allot(h.now, m); kind(err) != why && wrongField(err) != why {
		h.fail("got %v, want %q", err, why)
	}
	if hash := h.s.Hash(); why == "" && !withdraw && (h.s.Allot(h.now, m) != nil || h.s.Hash() != hash) {
		h.fail("the same call again is another one")
	}
}
