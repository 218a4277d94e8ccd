package series

import "github.com/idnode/idnode/series/format"

// lastDate returns the greatest date of a scope's numbers that are not voided or released, and FirstDate
// if there is none. The order of dates goes by it: such a number is on no document.
func (s *rules) lastDate(c *scope) format.Date {
	l := latest{rules: s, scope: c, date: noDate}
	if c.entered != nil {
		l.date = c.entered.date
	}
	l.look(c.last, c.last) // Mostly it has the greatest date, and no span a greater one.
	if c.finder != nil {
		top := len(c.finder.levels) - 1
		l.descend(top, 0, len(c.finder.levels[top]))
	} else {
		l.look(c.offset+1, c.last)
	}
	return max(l.date, format.FirstDate)
}

// latest is a search for the greatest date.
type latest struct {
	rules *rules
	scope *scope
	// date is the greatest one so far.
	date format.Date
}

// descend looks at the spans of a level, from one to below another, whose numbers may have a
// greater date; the last ones first.
func (l *latest) descend(level, from, to int) {
	spans := l.scope.finder.levels[level]
	for i := min(to, len(spans)) - 1; i >= from; i-- {
		switch {
		case !l.in(&spans[i]):
		case level > 0:
			l.descend(level-1, i*fan, (i+1)*fan)
		default:
			l.look(l.scope.first(i), min(l.scope.first(i+1)-1, l.scope.last))
		}
	}
}

// in reports whether a span can have a greater date.
func (l *latest) in(s *span) bool {
	return s.date > l.date && (s.endless+s.kept > 0 || s.last > l.rules.voidedBy())
}

// look looks at each of some numbers.
func (l *latest) look(from, to int64) {
	for n := max(from, l.scope.offset+1); n <= to; n++ {
		r := l.scope.at(n)
		if r.date <= l.date {
			continue
		}
		if state, _ := l.rules.stateOf(r); state != Voided && state != Released {
			l.date = r.date
		}
	}
}
