package series

import (
	"fmt"
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Allot has a scope give the numbers of a range that an authority allotted, and of its other ones, and no others; or
// takes back a range that gave none. What is so already does not change. The errors are *Error and *format.Error.
func (s *Series) Allot(now int64, m *raftlogv1.SeriesAllot) error {
	c, err := s.scopeOf(m.GetScope())
	if err != nil {
		return err
	}
	a := allotmentOf(m.GetAllotment())
	a.starts = 0
	if m.GetWithdraw() {
		return s.withdraw(now, c, a)
	}
	if c.allotted != nil && slices.ContainsFunc(c.allotted.ranges, a.same) {
		return nil
	}
	if err := s.judgeAllotted(c, a); err != nil {
		return err
	}
	s.advance(now)
	s.scopes.begin(c).allot(func(r []allotment) []allotment { return insert(r, a) }, 1)
	return nil
}

// judgeAllotted finds why a range cannot be allotted to a scope.
func (s *Series) judgeAllotted(c *scope, a allotment) error {
	_, values, err := s.format.ParseScope(c.values)
	if err != nil {
		return err
	}
	if err := s.definition.refuseValues(s.format, values); err != nil {
		return err
	}
	switch {
	case c.index >= MaxScopes:
		return full(MaxScopes, "scopes")
	case c.closed:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED, "scope", "%s is closed", name(c.values))
	case a.from <= c.lastNumber():
		return invalid("allotment", fmt.Sprintf("is not above %d, the last number of %s so far", c.lastNumber(), name(c.values)))
	case a.to > s.definition.most(s.format, values):
		return invalid("allotment", "has numbers that the format does not have")
	}
	var all allotments
	if c.allotted != nil {
		all.ranges = slices.Clone(c.allotted.ranges)
	}
	all.ranges = insert(all.ranges, a)
	if wrong := all.wrong(c.offset, c.last, s.most()); wrong != "" {
		return invalid("allotments", wrong)
	}
	return nil
}

// insert adds a range where it belongs.
func insert(ranges []allotment, a allotment) []allotment {
	i, _ := slices.BinarySearchFunc(ranges, a.from, func(r allotment, from int64) int { return int(r.from - from) })
	return slices.Insert(ranges, i, a)
}

func (s *Series) withdraw(now int64, c *scope, a allotment) error {
	i := -1
	if c.allotted != nil {
		i = slices.IndexFunc(c.allotted.ranges, func(r allotment) bool { return r.from == a.from && r.to == a.to })
	}
	switch {
	case i < 0:
		return invalid("allotment", fmt.Sprintf("is none of %s: %s", name(c.values), a.name()))
	case c.allotted.ranges[i].began():
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "allotment", "%s has given numbers", a.name())
	}
	s.advance(now)
	s.scopes.own(c.index).allot(func(r []allotment) []allotment { return slices.Delete(r, i, i+1) }, 1)
	return nil
}
