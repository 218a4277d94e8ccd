package series

import "github.com/idnode/idnode/series/format"

// day is a date, counted from the first one, which is 1; 0 means no date.
type day int32

func dayOf(d format.Date) day { return day(d-format.FirstDate) + 1 }

func (d day) date() format.Date { return format.Date(d-1) + format.FirstDate }

// lastDate returns the greatest date of a scope's numbers that are not voided at a time, and
// FirstDate if there is none. The order of dates goes by it: a voided number is on no
// document.
func (s *Series) lastDate(c *scope, now int64) format.Date {
	last := latest{series: s, scope: c, now: now}
	last.look(c.last, c.last) // Mostly it has the greatest date, and no span a greater one.
	if top := len(c.finder.levels) - 1; top >= 0 {
		last.descend(top, 0, len(c.finder.levels[top]))
	} else {
		last.look(c.offset+1, c.last)
	}
	return max(last.day, dayOf(format.FirstDate)).date()
}

// latest is a search for the greatest date.
type latest struct {
	series *Series
	scope  *scope
	now    int64
	// day is the greatest one so far.
	day day
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
	return s.day > l.day && (s.endless+s.released+s.kept > 0 || s.last > l.series.voidedBy(l.now))
}

// look looks at each of some numbers.
func (l *latest) look(from, to int64) {
	for n := max(from, l.scope.offset+1); n <= to; n++ {
		r := l.scope.at(n)
		if dayOf(r.date) <= l.day {
			continue
		}
		if state, _ := l.series.stateOf(r, l.now); state != Voided {
			l.day = dayOf(r.date)
		}
	}
}
