package series

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/series/format"
)

// entered are the numbers from before a scope that somebody entered. All are confirmed, and stay so.
type entered struct {
	records *btree.Map[int64, record]
	// date is the greatest date.
	date format.Date
}

// own returns a copy, to change it. The old ones do not change: other goroutines may read them.
func (e *entered) own() *entered {
	if e == nil {
		return nil
	}
	records := *e.records // Copy would mark the map that is read.
	return &entered{records.Copy(), e.date}
}

// len returns how many there are.
func (e *entered) len() int64 {
	if e == nil {
		return 0
	}
	return int64(e.records.Len())
}

// get returns what is known of a number: nothing, without a state, if it was not entered.
func (e *entered) get(number int64) *record {
	r := record{}
	if e != nil {
		r, _ = e.records.Get(number)
	}
	return &r
}

// from yields the numbers from one on, ascending.
func (e *entered) from(number int64) func(yield func(int64, *record) bool) {
	return func(yield func(int64, *record) bool) {
		if e != nil {
			e.records.Ascend(number, func(n int64, r record) bool { return yield(n, &r) })
		}
	}
}

// runs yields those that follow each other, at most 256 at a time, with the first of them.
func (e *entered) runs(yield func(first int64, records []record) bool) {
	var first int64
	var run []record
	for n, r := range e.from(0) {
		if len(run) == slabSize || len(run) > 0 && n != first+int64(len(run)) {
			if !yield(first, run) {
				return
			}
			run = run[:0]
		}
		if len(run) == 0 {
			first = n
		}
		run = append(run, *r)
	}
	if len(run) > 0 {
		yield(first, run)
	}
}

// below returns the greatest number below one, and its date; 0 and the first date if there is none.
func (e *entered) below(number int64) (below int64, date format.Date) {
	date = format.FirstDate
	if e != nil {
		e.records.Descend(number-1, func(n int64, r record) bool {
			below, date = n, r.date
			return false
		})
	}
	return below, date
}

// changeBefore is change for a number from before the scope.
func (c *scope) changeBefore(number int64, f func(r *record)) {
	r := c.entered.get(number)
	if c.entered == nil {
		c.entered = &entered{records: &btree.Map[int64, record]{}}
	}
	c.hash.Remove(c.hashRecord(number, r))
	if r.state != 0 {
		c.count[r.state]--
	}
	f(r)
	c.count[r.state]++
	c.hash.Add(c.hashRecord(number, r))
	c.entered.records.Set(number, *r)
	c.entered.date = max(c.entered.date, r.date)
}

// above yields the numbers above a place, with those from before the scope, ascending.
func (c *scope) above(place int64) func(yield func(int64, *record) bool) {
	return func(yield func(int64, *record) bool) {
		for n, r := range c.entered.from(min(place, c.offset) + 1) {
			if !yield(n, r) {
				return
			}
		}
		for n := min(max(place, c.offset), c.last) + 1; n <= c.last; n++ {
			if !yield(n, c.at(n)) {
				return
			}
		}
	}
}
