package series

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Summary is what a scope has.
type Summary struct {
	Scope []string
	Last  int64
	// LastDate is the greatest date of a number that is not voided, and FirstDate without one.
	LastDate format.Date
	Closed   bool
	// Before is the last number from before this series; 0 if the scope begins at 1.
	Before int64
	// Open counts the overdue ones too. Before, Open, Confirmed, Voided, Released and Unknown
	// together are Last.
	Open, Overdue, Confirmed, Voided, Released, Unknown int64
}

// Report returns what up to limit scopes have at a time, in the order in which they began,
// without the first skip ones.
func (s *Series) Report(now int64, skip, limit int) []Summary {
	now = max(now, s.now)
	var all []Summary
	for c := range s.scopes.from(skip) {
		if len(all) == limit {
			break
		}
		all = append(all, s.summary(c, now))
	}
	return all
}

func (s *Series) summary(c *scope, now int64) Summary {
	count, overdue := s.count(c, now)
	return Summary{
		Scope: c.values, Last: c.last, LastDate: s.lastDate(c, now), Closed: c.closed, Before: c.offset, Overdue: overdue,
		Open: count[Open], Confirmed: count[Confirmed], Voided: count[Voided], Released: count[Released], Unknown: count[Unknown],
	}
}

// Before returns, where the first number of a scope is among some, the last one so far of
// the period before it with the same values; nil if there is none. Of several such periods it is
// the newest.
func (s *Series) Before(numbers []*raftlogv1.SeriesNumber) (last *raftlogv1.SeriesLast) {
	var c *scope
	var newest int32
	for _, n := range numbers {
		if c == nil || !slices.Equal(c.values, n.GetScope()) {
			c = s.lookUp(n.GetScope())
		}
		if c == nil || n.GetNumber() != c.offset+1 || last != nil && n.GetDate() < newest {
			continue
		}
		if before := s.periodBefore(c); before != nil {
			last, newest = &raftlogv1.SeriesLast{Scope: before.values, Last: before.last}, n.GetDate()
		}
	}
	return last
}

// periodBefore returns the scope of the period before that of another, with the same
// values; nil if there is none.
func (s *Series) periodBefore(c *scope) (before *scope) {
	s.periods.Descend(c.index, func(i int) bool {
		d := s.scopes.at(i)
		if d != c && sameValues(d.given(), c.given()) {
			before = d
		}
		return d == c
	})
	return before
}

// maxListed is how many numbers one call looks at: it holds up all others.
const maxListed = 1_000

// Numbers returns up to limit numbers of a scope above one, ascending: those in a state,
// or all if the state is 0. It looks at 1,000 numbers at most, and goes on above next; 0
// is the end. The error is *Error.
func (s *Series) Numbers(now int64, values []string, state State, above int64, limit int) (
	all []*raftlogv1.SeriesNumber, next int64, err error,
) {
	c, err := s.find(values)
	if err != nil {
		return nil, 0, err
	}
	now = max(now, s.now)
	from := min(max(above, c.offset), c.last)
	last := min(c.last, from+maxListed)
	for n := from + 1; n <= last; n++ {
		if is, _ := s.stateOf(c.at(n), now); state != 0 && is != state {
			continue
		}
		if len(all) == limit {
			return all, n - 1, nil
		}
		all = append(all, s.number(c, n, now))
	}
	if last < c.last {
		return all, last, nil
	}
	return all, 0, nil
}

// Find returns what is known of the number with a text. The error is a *format.Error for a
// text that does not match the format; false means that the number was not taken.
func (s *Series) Find(now int64, text string) (*raftlogv1.SeriesNumber, bool, error) {
	parsed, err := s.format.Parse(text)
	if err != nil {
		return nil, false, err
	}
	values, err := s.format.Scope(parsed.Date, parsed.Values)
	if err != nil {
		return nil, false, err
	}
	c := s.lookUp(values)
	if c == nil || parsed.Number <= c.offset || parsed.Number > c.last {
		return nil, false, nil
	}
	n := s.number(c, parsed.Number, max(now, s.now))
	// Dates of one scope have several texts where the format shows more of them.
	return n, docid.Fold(n.GetText()) == docid.Fold(text), nil
}

// VerifyCursor is where a verification goes on. The zero value is the beginning.
type VerifyCursor struct {
	// since is that of the series: one of its name that began later is verified from its beginning.
	since  int64
	scope  int
	number int64
	// lost is the next lost key, behind all scopes.
	lost string
}

// String returns the text that ParseVerifyCursor takes.
func (c VerifyCursor) String() string {
	return fmt.Sprintf("%d:%d:%d:%s", c.since, c.scope, c.number, c.lost)
}

// ParseVerifyCursor returns the cursor that has a text; false if none has it. A cursor of
// another series is one of this series too.
func ParseVerifyCursor(s string) (c VerifyCursor, ok bool) {
	parts := strings.SplitN(s, ":", 4)
	if len(parts) != 4 {
		return c, false
	}
	since, err := strconv.ParseInt(parts[0], 10, 64)
	scope, err2 := strconv.ParseUint(parts[1], 10, 31)
	number, err3 := strconv.ParseUint(parts[2], 10, 63)
	return VerifyCursor{since, int(scope), int64(number), parts[3]}, errors.Join(err, err2, err3) == nil
}

// VerifySome looks at up to limit numbers and lost keys from a cursor on, and returns where to go on;
// false at the end. It finds the first number that is not in exactly one state, or that its key does
// not lead to. It compares the sums of the states with the scopes' last numbers, and does not count
// again. The series may change between two calls. One that began anew is verified from its
// beginning. The error is *VerifyError.
func (s *Series) VerifySome(at VerifyCursor, limit int) (next VerifyCursor, more bool, err error) {
	if at.since != s.since {
		at = VerifyCursor{since: s.since}
	}
	for limit > 0 && at.scope < s.scopes.len {
		c := s.scopes.at(at.scope)
		if sum := c.offset + c.count[Open] + c.count[Confirmed] + c.count[Voided] + c.count[Released] + c.count[Unknown]; sum != c.last {
			return at, false, &VerifyError{Scope: c.values, Number: c.last, Detail: "is the last, and the sums of the states are wrong"}
		}
		at.number = max(at.number, c.offset)
		for ; at.number < c.last && limit > 0; limit-- {
			at.number++
			if detail := s.wrong(c, at.number, c.at(at.number)); detail != "" {
				return at, false, &VerifyError{Scope: c.values, Number: at.number, Detail: detail}
			}
		}
		if at.number >= c.last {
			at = VerifyCursor{since: s.since, scope: at.scope + 1}
		}
	}
	if at.scope < s.scopes.len {
		return at, true, nil
	}
	at.lost, more, err = s.verifyLost(at.lost, limit)
	return at, more, err
}

// verifyLost finds a key that has a number, and none, among up to limit from one on. It
// returns the next one, and whether there is one.
func (s *Series) verifyLost(from string, limit int) (next string, more bool, err error) {
	s.lost.Ascend(from, func(key string, _ lostKey) bool {
		if limit--; limit < 0 {
			next, more = key, true
			return false
		}
		if at := s.index.find(key); at != 0 {
			err = &VerifyError{Scope: s.scopes.at(at.scope()).values, Number: at.number(), Detail: "is that of a key that has lost its number"}
		}
		return err == nil
	})
	return next, more, err
}

func (s *Series) wrong(c *scope, n int64, r *record) string {
	leaf, whole := c.place(n)/leafSize, c.place(n)%leafSize == 0
	switch {
	case r.state < Open || r.state > Unknown:
		return "is in no state"
	case r.shared && r.state != Unknown:
		return "may be another key's and is not unknown"
	case whole && len(c.finder.levels) > 0 && c.finder.levels[0][leaf] != c.leaf(leaf):
		return "is one of some of which the lowest free or open one is not found"
	case c.waits(n, r) != (r.state == Open && r.expires != 0):
		return "has a deadline and is not open, or the other way around"
	case (r.reason() != "") != (r.state == Voided):
		return "has a reason and is not voided, or the other way around"
	case r.owner() == "" && r.state != Released && r.state != Voided && !r.shared:
		return "has no key"
	case r.owner() != "" && s.index.find(r.owner()) != refOf(c.index, n):
		return "has a key that leads elsewhere"
	}
	return ""
}
