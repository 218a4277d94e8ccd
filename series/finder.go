package series

import "math"

const (
	// leafSize is how many numbers a leaf of a finder has, and fan how many spans the one
	// above them has.
	leafSize = 64
	fan      = 16
)

// never is the end of an open number whose time does not end.
const never = math.MaxInt64

// end returns when an open number's time ends.
func (r *record) end() int64 {
	if r.expires == 0 {
		return never
	}
	return r.expires
}

// ended reports whether an open number's time has ended.
func (r *record) ended(now int64) bool { return r.expires != 0 && r.expires <= now }

// span is what some consecutive numbers have.
type span struct {
	// first is when the time of the first open one ends, and last that of the last.
	first, last int64
	// open and released say that some are so.
	open, released bool
}

// spanOf returns what one number has.
func spanOf(r *record) span {
	switch r.state {
	case Open:
		return span{open: true, first: r.end(), last: r.end()}
	case Released:
		return span{released: true}
	default:
		return span{}
	}
}

// join returns what two spans have together.
func (a span) join(b span) span {
	a.released = a.released || b.released
	switch {
	case !b.open:
		return a
	case !a.open:
		b.released = a.released
		return b
	}
	a.first, a.last = min(a.first, b.first), max(a.last, b.last)
	return a
}

// needs reports whether what a span is has come from a part of it.
func (a span) needs(part span) bool {
	return part.released || part.open && (part.first == a.first || part.last == a.last)
}

// wanted is what a search looks for: numbers of any of three kinds.
type wanted struct {
	released bool
	// ended are open numbers whose time has ended at a time, lasting those whose time ends
	// later than a time, if it ends.
	ended, lasting bool
	at             int64
}

// in reports whether a span can have such a number.
func (w wanted) in(s *span) bool {
	return w.released && s.released || s.open && (w.ended && s.first <= w.at || w.lasting && (s.last > w.at || s.last == never))
}

// is reports whether a record is such a number.
func (w wanted) is(r *record) bool {
	switch r.state {
	case Released:
		return w.released
	case Open:
		return w.ended && r.ended(w.at) || w.lasting && !r.ended(w.at)
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

// set stores what a leaf has. It may be the next one.
func (f *finder) set(i int, s span) {
	for level := 0; ; level++ {
		if level == len(f.levels) {
			f.levels = append(f.levels, nil)
		}
		for level > 0 && len(f.levels[level]) < i {
			f.levels[level] = append(f.levels[level], f.below(level, len(f.levels[level])))
		}
		spans := f.levels[level]
		switch {
		case i == len(spans):
			f.levels[level] = append(spans, s)
		case spans[i] == s:
			return
		default:
			spans[i] = s
		}
		if len(f.levels[level]) <= fan {
			return
		}
		i /= fan
		s = f.below(level+1, i)
	}
}

// below returns what the spans below one have together.
func (f *finder) below(level, i int) (s span) {
	spans := f.levels[level-1]
	for _, b := range spans[i*fan : min((i+1)*fan, len(spans))] {
		s = s.join(b)
	}
	return s
}
