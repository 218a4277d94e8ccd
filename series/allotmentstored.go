package series

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// wrong says what allotments cannot be together, in a scope whose places are behind offset and up to last. A scope
// that is read piece by piece has no last place yet: that is 0.
func (a *allotments) wrong(offset, last, most int64) string {
	if a == nil {
		return ""
	}
	if len(a.ranges) > MaxAllotments {
		return "are more than 100 of one scope"
	}
	number, place, before := offset, offset, (*allotment)(nil)
	for i := range a.ranges {
		r := &a.ranges[i]
		switch {
		case r.from < 1 || r.to < r.from || r.to > most:
			return "have a range that the format cannot show"
		case r.from <= number:
			return "have ranges that overlap, or numbers from before the series"
		case r.until < format.FirstDate || r.until > format.LastDate:
			return "have a date that no document has"
		case len(r.note) > MaxNoteBytes || !visible(r.note):
			return "have a note of more than 64 bytes, or with invisible characters"
		}
		if number = r.to; r.starts == 0 {
			continue
		}
		if r.starts <= place || before == nil && a.ranges[0].from < r.starts || before != nil && r.starts-before.starts > before.size() {
			return "have a range that begins elsewhere"
		}
		place, before = r.starts, r
	}
	return a.wrongLast(before, last)
}

// wrongLast says what is wrong of the last place of a scope, of which newest began last.
func (a *allotments) wrongLast(newest *allotment, last int64) string {
	switch {
	case last == 0 || len(a.ranges) == 0:
	case newest == nil && a.ranges[0].from <= last:
		return "have numbers that were given before"
	case newest != nil && (newest.starts > last || last-newest.starts >= newest.size()):
		return "do not have the last number"
	}
	return ""
}

// allotmentOf returns the allotment in the log.
func allotmentOf(m *raftlogv1.SeriesAllotment) allotment {
	a := allotment{from: m.GetFrom(), to: m.GetTo(), until: format.LastDate, note: m.GetNote(), starts: m.GetStarts()}
	if m != nil && m.Until != nil {
		a.until = format.Date(m.GetUntil())
	}
	return a
}

func (a *allotment) message() *raftlogv1.SeriesAllotment {
	m := &raftlogv1.SeriesAllotment{From: a.from, To: a.to, Note: a.note, Starts: a.starts}
	if a.until != format.LastDate {
		m.Until = new(int32(a.until))
	}
	return m
}

// allotmentsOf returns those of a stored scope; nil if it has none.
func allotmentsOf(p *raftlogv1.SeriesNumbersRecord) *allotments {
	if p.GetAllotted() == 0 {
		return nil
	}
	a := &allotments{changes: p.GetAllotted()}
	for _, m := range p.GetAllotments() {
		a.ranges = append(a.ranges, allotmentOf(m))
	}
	return a
}

// NumbersOf returns a function that returns the number at a place of a stored scope, and the note of its allotment.
func NumbersOf(p *raftlogv1.SeriesNumbersRecord) func(place int64) (number int64, note string) {
	a := allotmentsOf(p)
	return func(place int64) (int64, string) { return a.numberOf(place), a.note(place) }
}

// messages returns the allotments as they are stored.
func (a *allotments) messages() (all []*raftlogv1.SeriesAllotment, changes int64) {
	if a == nil {
		return nil, 0
	}
	for i := range a.ranges {
		all = append(all, a.ranges[i].message())
	}
	return all, a.changes
}
