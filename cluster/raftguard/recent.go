package raftguard

import "time"

// recent knows the shortest and the longest of the durations of the last one to two periods. It
// is not safe for concurrent use.
type recent struct {
	period time.Duration
	began  time.Time
	// newest has the durations since began, before those of the period before.
	newest, before span
}

// span is the shortest and the longest of some durations; the zero value is of none.
type span struct {
	some              bool
	shortest, longest time.Duration
}

func (s span) with(d time.Duration) span {
	if !s.some {
		return span{true, d, d}
	}
	return span{true, min(s.shortest, d), max(s.longest, d)}
}

func (r *recent) add(now time.Time, d time.Duration) {
	r.turn(now)
	r.newest = r.newest.with(d)
}

func (r *recent) turn(now time.Time) {
	switch age := now.Sub(r.began); {
	case age >= 2*r.period:
		r.before, r.newest, r.began = span{}, span{}, now
	case age >= r.period:
		r.before, r.newest, r.began = r.newest, span{}, now
	}
}

// shortest is 0 if there is no duration.
func (r *recent) shortest(now time.Time) time.Duration {
	r.turn(now)
	if r.before.some && r.newest.some {
		return min(r.before.shortest, r.newest.shortest)
	}
	return r.before.shortest + r.newest.shortest // One of them is 0.
}

func (r *recent) longest(now time.Time) time.Duration {
	r.turn(now)
	return max(r.before.longest, r.newest.longest)
}
