package check

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/test/history"
)

// held is numbers that a caller holds at a moment.
type held struct {
	low, high int64
	// owner is the place of their range.
	owner int
}

// lives walks through the time in which ranges are held, and finds those that
// share numbers, and returns of ranges that were not the newest.
func (j *hiloJudge) lives() {
	now := btree.NewBTreeG(func(a, b held) bool { return a.low < b.low })
	for _, m := range j.moments() {
		r := &j.ranges[m.owner]
		if m.begins {
			j.begin(now, r, m.owner)
			continue
		}
		if r.accepted != nil {
			j.newest(now, r)
		}
		if h, ok := now.Get(held{low: r.low}); ok && h.owner == m.owner {
			now.Delete(h)
			h.high = r.last
			if h.low <= h.high {
				now.Set(h)
			}
		}
	}
}

// moment is when a range begins to be held, or what is above its last number
// ceases to be.
type moment struct {
	time   int64
	begins bool
	owner  int
}

// moments are in order of time. At the same time a range ends before another
// begins: calls that touch run side by side.
func (j *hiloJudge) moments() []moment {
	var all []moment
	for i, r := range j.ranges {
		all = append(all, moment{r.ret, true, i})
		if r.given != history.Never {
			all = append(all, moment{r.given, false, i})
		}
	}
	slices.SortFunc(all, func(a, b moment) int {
		if c := cmp.Compare(a.time, b.time); c != 0 {
			return c
		}
		if a.begins != b.begins {
			if b.begins {
				return -1
			}
			return 1
		}
		return a.owner - b.owner
	})
	return all
}

// begin puts a range among those that are held.
func (j *hiloJudge) begin(now *btree.BTreeG[held], r *hiloRange, owner int) {
	h := held{r.low, r.high, owner}
	if r.given <= r.ret {
		h.high = r.last // given back as soon as it was answered
	}
	if h.low > h.high {
		return
	}
	clash := false
	now.Descend(held{low: h.high}, func(other held) bool {
		if other.high < h.low {
			return false
		}
		clash = true
		o := &j.ranges[other.owner]
		j.violation("hilo/overlap", j.where, []int{o.pos, r.pos}, "%d to %d was given out at %s, while %d to %d was held", r.low, r.high,
			at(r.ret), o.low, other.high)
		return true
	})
	if !clash {
		now.Set(h)
	}
}

// newest checks that no range above an accepted return was held all the while.
func (j *hiloJudge) newest(now *btree.BTreeG[held], r *hiloRange) {
	back := r.accepted
	now.Reverse(func(other held) bool {
		if other.low <= r.high {
			return false
		}
		o := &j.ranges[other.owner]
		if other.high == o.high && o.given <= back.ret && o.last < o.low {
			return true // it may have been given back unused just before
		}
		j.violation("hilo/newest", j.where, []int{o.pos, back.pos}, "%d to %d was taken back, though %d to %d had been given out",
			r.low, r.high, o.low, o.high)
		return false
	})
}
