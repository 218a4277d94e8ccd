package fsm

import (
	"cmp"
	"container/heap"
)

// The orders of a window's shares.
const (
	byAge = iota
	bySize
	shareOrders
)

// requestOrder is a heap of shares that are not empty.
type requestOrder struct {
	order  int
	before func(a, b *requestShare) bool
	shares []*requestShare
}

// older reports whether a share's oldest entry is older than another's. The principal
// decides within one log entry.
func older(a, b *requestShare) bool {
	return cmp.Or(cmp.Compare(a.oldest().index, b.oldest().index), cmp.Compare(a.principal, b.principal)) < 0
}

// larger reports whether a share has more entries than another, or as many and is older.
func larger(a, b *requestShare) bool {
	if a.size() != b.size() {
		return a.size() > b.size()
	}
	return older(a, b)
}

func (o *requestOrder) first() *requestShare { return o.shares[0] }

// moved puts a share that has changed in its place.
func (o *requestOrder) moved(s *requestShare) { heap.Fix(o, s.places[o.order]) }

// remove removes a share, which may be empty.
func (o *requestOrder) remove(s *requestShare) { heap.Remove(o, s.places[o.order]) }

func (o *requestOrder) Len() int { return len(o.shares) }

func (o *requestOrder) Less(i, j int) bool { return o.before(o.shares[i], o.shares[j]) }

func (o *requestOrder) Swap(i, j int) {
	o.shares[i], o.shares[j] = o.shares[j], o.shares[i]
	o.shares[i].places[o.order], o.shares[j].places[o.order] = i, j
}

func (o *requestOrder) Push(x any) {
	s := x.(*requestShare)
	s.places[o.order] = len(o.shares)
	o.shares = append(o.shares, s)
}

func (o *requestOrder) Pop() any {
	last := len(o.shares) - 1
	s := o.shares[last]
	o.shares[last] = nil
	o.shares = o.shares[:last]
	return s
}
