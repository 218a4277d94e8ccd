package series_test

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// all are the entries of a scope with those from before it, ascending.
func (c *modelScope) all() []*entry { return slices.Concat(c.before, c.entries) }

// bound reports whether an entry binds the dates of others.
func bound(e *entry) bool { return e.state != series.Voided && e.state != series.Released }

// enter gives a key the number that its document has already.
func (m *model) enter(now int64, q series.Request, number int64, because string) string {
	if m.suspended {
		return "suspended"
	}
	m.at(now)
	key, name := q.Keys[0], scopeName(q.Date.String()[:4], q.Values[0])
	c := m.scopes[name]
	if c == nil {
		c = &modelScope{place: len(m.scopes), branch: q.Values[0]}
	}
	if scope, has, e := m.find(key); e != nil && e.state != series.Released {
		if scope[5:] != scopeName(q.Values[0]) || q.DateGiven && (q.Date != e.date || scope != name) || has != number {
			return "conflict"
		}
		if e.unended() {
			e.state, e.shared = series.Confirmed, false
		}
		return ""
	}
	if why := m.refuseEntered(c, q, number); why != "" {
		return why
	}
	fresh := entry{number: number, key: key, state: series.Confirmed, date: q.Date}
	e := c.has(number)
	switch {
	case e != nil:
		return m.enterGiven(c, e, q, fresh, because)
	case number <= c.offset:
		if m.d.Order != series.OrderAny && slices.ContainsFunc(c.all(), func(e *entry) bool { return e.number > number && bound(e) }) {
			i := slices.IndexFunc(c.all(), func(e *entry) bool { return e.number > number && bound(e) })
			if q.Date > c.all()[i].date {
				return "date back"
			}
		}
		m.disown(key)
		c.before = append(c.before, &fresh)
		slices.SortFunc(c.before, func(a, b *entry) int { return int(a.number - b.number) })
		return ""
	}
	var of *modelRange
	if len(c.ranges) > 0 {
		i := slices.IndexFunc(c.ranges, func(r *modelRange) bool { return r.from <= number && number <= r.to })
		if i < 0 || number < c.last() {
			return "number"
		}
		if of = c.ranges[i]; q.Date > of.until {
			return "date"
		}
	}
	m.passOver(c, len(c.entries), because)
	m.scopes[name] = c
	for c.last() < number {
		e = c.add(c.next(format.FirstDate))
		e.state, e.reason, e.date = series.Voided, because, q.Date
	}
	m.disown(key)
	fresh.of = e.of
	*e = fresh
	return ""
}

// disown takes what a key had from it.
func (m *model) disown(key string) {
	if _, _, e := m.find(key); e != nil {
		e.key = ""
	}
	delete(m.had, key)
}

// passOver voids the numbers below a place that wait for a key, where only the last ones may.
func (m *model) passOver(c *modelScope, place int, because string) {
	for m.d.OnRelease == series.ReleaseReusesNewest && place > 0 && c.entries[place-1].state == series.Released &&
		c.entries[place-1].of == c.entries[len(c.entries)-1].of {
		place--
		c.entries[place].state, c.entries[place].reason = series.Voided, because
	}
}

func (m *model) enterGiven(c *modelScope, e *entry, q series.Request, fresh entry, because string) string {
	switch {
	case e.state == series.Unknown && q.DateGiven && q.Date != e.date:
		return "date"
	case e.state == series.Unknown && e.owner() != "":
		return "conflict"
	case e.state == series.Unknown:
		fresh.date = e.date
	case !m.free(e), m.d.OnRelease == series.ReleaseReusesNewest && e.of != c.entries[len(c.entries)-1].of:
		return "state"
	case e.of != nil && q.Date > e.of.until:
		return "date"
	default:
		m.passOver(c, slices.Index(c.entries, e), because)
	}
	m.disown(fresh.key)
	if e.state != series.Unknown && e.key != "" {
		m.had[e.key] = had{e.number, e.state == series.Released}
	}
	fresh.of = e.of
	*e = fresh
	return ""
}

// refuseEntered finds why no number can be that of a document.
func (m *model) refuseEntered(c *modelScope, q series.Request, number int64) string {
	ahead := format.Date(m.d.MaxAheadDays)
	if !m.d.AheadGiven {
		ahead = map[bool]format.Date{true: 366, false: 1}[m.d.Order == series.OrderAny]
	}
	least := m.lastDate(c, m.now)
	if e := c.has(number); e != nil && e.state == series.Unknown {
		least = format.FirstDate
	} else if number <= c.offset {
		least = format.FirstDate
		for _, e := range c.before {
			if e.number < number {
				least = e.date
			}
		}
	}
	keys, _ := m.keys()
	if _, _, e := m.find(q.Keys[0]); e == nil {
		if _, lost := m.had[q.Keys[0]]; !lost {
			keys++
		}
	}
	open := slices.ContainsFunc(c.entries, func(e *entry) bool { return e.state == series.Open && !m.free(e) })
	switch {
	case number > 99:
		return "number"
	case c.closed:
		return "closed"
	case m.d.Order == series.OrderOneOpen && open:
		return "too many open"
	case !m.allows(q.Values[0]):
		return "values"
	case q.Date > q.Today+ahead:
		return "date"
	case m.d.Order != series.OrderAny && q.Date < least:
		return "date back"
	case m.d.MaxKeys > 0 && keys > m.d.MaxKeys:
		return "full"
	}
	return ""
}

func (h *history) enter() {
	q := series.Request{
		Values: []string{h.branch()}, Date: format.DateOf(2026, 12, 29) + format.Date(h.IntN(5)),
		Today: format.DateOf(2026, 12, 29) + format.Date(h.IntN(4)), DateGiven: h.IntN(2) == 0, Keys: []string{h.key()},
	}
	if !q.DateGiven {
		q.Date = q.Today
	}
	number := h.one(1, 2, 3, 5, 8, 20, 60, 100)
	if c := h.m.scopes[scopeName(q.Date.String()[:4], q.Values[0])]; c != nil && h.IntN(3) > 0 {
		number = max(1, c.last()+h.one(-2, -1, 0, 1, 1, 2, 5))
		if len(c.entries) > 0 && h.IntN(3) == 0 {
			number = c.entries[h.IntN(len(c.entries))].number
		}
	}
	if _, has, e := h.m.find(q.Keys[0]); e != nil && h.IntN(2) == 0 {
		number = has
	}
	why := h.m.enter(h.now, q, number, "elsewhere")
	h.log = append(h.log, fmt.Sprintf("%d: enter %d, %+v: %s", h.now, number, q, why))
	m := q.Message(h.now)
	m.Number, m.Because = number, "elsewhere"
	got, err := h.s.Take(h.now, m)
	if kind(err) != why && wrongField(err) != why {
		h.fail("got %v, want %q", err, why)
	}
	if why != "" {
		return
	}
	if len(got) != 1 || got[0].Key != q.Keys[0] || got[0].Number != number {
		h.fail("entered %d, got %v", number, got)
	}
	hash := h.s.Hash()
	if again, err := h.s.Take(h.now, m); err != nil || !proto.Equal(again[0], got[0]) || h.s.Hash() != hash {
		h.fail("again it is %v, %v, not %v", again, err, got)
	}
}
