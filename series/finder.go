package series

import (
	"math"

	"github.com/idnode/idnode/series/format"
)

const (
	// leafSize is how many numbers a leaf of a finder has, and fan how many spans are below another.
	leafSize = 64
	fan      = 16
)

func (r *record) ended(now int64) bool { return r.expires != 0 && r.expires <= now }

// span is what some consecutive numbers have: when the time of the first and of the last open
// one ends, how many are open without an end, released, and confirmed or unknown; and the
// greatest date of those that documents may have.
type span struct {
	first, last             int64
	endless, released, kept int32
	date                    format.Date
}

// nothing is the span of numbers of which all are voided.
var nothing = span{first: math.MaxInt64, last: math.MinInt64, date: noDate}

// noDate is before every date.
var noDate = format.FirstDate - 1

func spanOf(r *record) span {
	s := nothing
	if r.state != Voided && r.state != Released && r.state != 0 {
		s.date = r.date
	}
	switch {
	case r.state == Open && r.expires == 0:
		s.endless = 1
	case r.state == Open:
		s.first, s.last = r.expires, r.expires
	case r.state == Released:
		s.released = 1
	case r.state == Confirmed || r.state == Unknown:
		s.kept = 1
	}
	return s
}

// join returns what two spans have together.
func (a span) join(b span) span {
	return span{
		first: min(a.first, b.first), last: max(a.last, b.last), endless: a.endless + b.endless, released: a.released + b.released,
		kept: a.kept + b.kept, date: max(a.date, b.date),
	}
}

// loses reports whether the ends or the date of a span may be others because a part of it has changed.
func (a span) loses(old, now span) bool {
	return old.first == a.first && now.first > old.first || old.last == a.last && now.last < old.last ||
		old.date == a.date && now.date < old.date
}

// wanted is what a search looks for: numbers of any of four kinds.
type wanted struct {
	released bool
	// kept are confirmed and unknown numbers.
	kept bool
	// ended are open numbers whose time has ended at a time, lasting all other open ones.
	ended, lasting bool
	at             int64
}

// in reports whether a span can have such a number.
func (w wanted) in(s *span) bool {
	return w.released && s.released > 0 || w.kept && s.kept > 0 || w.ended && s.first <= w.at || w.lasting && (s.last > w.at || s.endless > 0)
}

// is reports whether a record is such a number.
func (w wanted) is(r *record) bool {
	switch r.state {
	case Released:
		return w.released
	case Open:
		return w.ended && r.ended(w.at) || w.lasting && !r.ended(w.at)
	case Confirmed, Unknown:
		return w.kept
	default:
		return false
	}
}

// finder finds the lowest number of a kind in time that grows with the logarithm of their
// count. It is a tree: levels[0] has the leaves, and each span of a level above is what fan
// spans below it have together. A scope of one leaf has none.
//
// Invariant: a span is the join of what is below it.
type finder struct{ levels [][]span }

// leaf returns the next leaf from one on that can have a number; false if there is none.
func (f *finder) leaf(from int, w wanted) (int, bool) {
	level := 0
	for i := from; ; {
		if level == len(f.levels) {
			return 0, false
		}
		// What is left of the spans that have one above them together.
		end := min((i/fan+1)*fan, len(f.levels[level]))
		for i < end && !w.in(&f.levels[level][i]) {
			i++
		}
		if i == end {
			level, i = level+1, (i+fan-1)/fan
			continue
		}
		if level == 0 {
			return i, true
		}
		level, i = level-1, i*fan
	}
}

// grow adds a leaf without open or released numbers.
func (f *finder) grow() {
	i := len(f.levels[0])
	f.levels[0] = append(f.levels[0], nothing)
	for level := 1; len(f.levels[level-1]) > fan; level++ {
		if level == len(f.levels) {
			f.levels = append(f.levels, []span{f.below(level, 0)})
		}
		if i /= fan; i == len(f.levels[level]) {
			f.levels[level] = append(f.levels[level], nothing)
		}
	}
}

// change takes in what a number of a leaf has, and had. Counts change without a look at
// others; leaf returns what the numbers of the leaf have.
func (f *finder) change(i int, old, now span, leaf func(i int) span) {
	for level := range f.levels {
		s := &f.levels[level][i]
		was := *s
		s.endless, s.released, s.kept = s.endless+now.endless-old.endless, s.released+now.released-old.released, s.kept+now.kept-old.kept
		if !was.loses(old, now) {
			s.first, s.last, s.date = min(s.first, now.first), max(s.last, now.last), max(s.date, now.date)
		} else if level == 0 {
			*s = leaf(i)
		} else {
			*s = f.below(level, i)
		}
		if was == *s {
			return
		}
		old, now, i = was, *s, i/fan
	}
}

// below returns what the spans below one have together.
func (f *finder) below(level, i int) span {
	s, spans := nothing, f.levels[level-1]
	for _, b := range spans[i*fan : min((i+1)*fan, len(spans))] {
		s = s.join(b)
	}
	return s
}
