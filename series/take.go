package series

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Request asks for numbers.
type Request struct {
	// Values are the scope values, in the order of Format.Names.
	Values []string
	// Date is the document's date. It decides text and period.
	Date format.Date
	// DateGiven means that the date is the caller's own, and not the present one. Only
	// then a key that has a number of another date is refused: a retry on the next day is
	// the same call.
	DateGiven bool
	// Today is the present day. Dates of new numbers are bounded by it.
	Today format.Date
	// Keys are the documents, each once.
	Keys []string
	// Label is stored with each number.
	Label string
	// ExpiresIn replaces that of the definition, which is its bound; 0 is the definition's.
	ExpiresIn time.Duration
}

// taking is a request that is judged and not yet done.
type taking struct {
	*Request
	now   int64
	scope *scope // nil if it does not exist yet.
	// fresh are the keys that get new numbers, kept the lapsed numbers that their keys take
	// again: without a date of the caller also those of earlier periods.
	fresh []string
	kept  map[ref]bool
}

// Take gives each key a number, or none. A key that has a number keeps it; look at its
// state, for a number can be voided. The others get consecutive numbers in the order of
// the keys.
//
// The errors are *Error, *format.Error and *format.FullError.
func (s *Series) Take(now int64, q Request) ([]*raftlogv1.SeriesNumber, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	values, err := s.format.Scope(q.Date, q.Values)
	if err != nil {
		return nil, err
	}
	if s.suspended {
		return nil, suspended()
	}
	t := &taking{Request: &q, now: s.advance(now)}
	if i, ok := s.byName[scopeName(values)]; ok {
		t.scope = s.scopes.own(i)
	}
	if err := s.sort(t); err != nil {
		return nil, err
	}
	if len(t.fresh)+len(t.kept) > 0 {
		if err := s.give(t, values); err != nil {
			return nil, err
		}
	}
	numbers := make([]*raftlogv1.SeriesNumber, len(q.Keys))
	for i, key := range q.Keys {
		numbers[i], _ = s.WhoHas(t.now, key)
	}
	return numbers, nil
}

func (q *Request) check() error {
	if len(q.Label) > MaxLabelBytes || !visible(q.Label) {
		return invalid("label", "is longer than 64 bytes, or has invisible characters")
	}
	if q.ExpiresIn < 0 || q.ExpiresIn > MaxExpiresIn {
		return invalid("expires_in", "is not from 0 to 3650 days")
	}
	return checkKeys(q.Keys)
}

func checkKeys(keys []string) error {
	if len(keys) < 1 || len(keys) > MaxKeys {
		return invalid("keys", "are not 1 to 1000")
	}
	var seen map[string]bool // One key is no map's worth.
	if len(keys) > 1 {
		seen = make(map[string]bool, len(keys))
	}
	for _, key := range keys {
		switch {
		case key == "":
			return invalid("keys", "has an empty key")
		case len(key) > MaxKeyBytes:
			return invalid("keys", "has a key of more than 128 bytes")
		case !visible(key):
			return invalid("keys", "has a key with invisible characters, or that is not UTF-8")
		case seen[key]:
			return invalid("keys", "has a key twice")
		}
		if seen != nil {
			seen[key] = true
		}
	}
	return nil
}

// visible reports whether a text cannot look as another one does.
func visible(s string) bool {
	_, invisible := docid.FirstInvisible(s)
	return !invisible && utf8.ValidString(s)
}

// sort finds the keys that have no number, and those that may not have this one.
func (s *Series) sort(t *taking) error {
	for _, key := range t.Keys {
		at := s.index.find(key)
		if at == 0 {
			t.fresh = append(t.fresh, key)
			continue
		}
		c := s.scopes.at(at.scope())
		r := c.at(at.number())
		if state, _ := s.stateOf(r, t.now); state == Released {
			t.fresh = append(t.fresh, key)
			continue
		}
		if t.DateGiven && (t.Date != r.date || c != t.scope) || !sameValues(c.given(), t.Values) {
			return conflict(s.number(c, at.number(), t.now))
		}
		if s.lapsed(r, t.now) {
			if t.kept == nil {
				t.kept = map[ref]bool{}
			}
			t.kept[at] = true
		}
	}
	return nil
}

// give gives the keys their numbers, if all can have them.
func (s *Series) give(t *taking, values []string) error {
	c := t.scope
	if c == nil {
		c = s.newScope(values)
	}
	if err := s.refuseEnd(t.ExpiresIn); err != nil {
		return err
	}
	first := s.run(c, t.now, int64(len(t.fresh)), t.kept)
	if err := s.refuse(t, c, first); err != nil {
		return err
	}
	expires := t.expires(&s.definition)
	for at := range t.kept {
		s.scopes.own(at.scope()).change(at.number(), func(r *record) { r.expires = expires })
	}
	if len(t.fresh) == 0 {
		return nil
	}
	s.begin(c)
	for i, key := range t.fresh {
		s.bind(t, c, key, first+int64(i), expires)
	}
	s.settle(c, t.now, settledByKey*len(t.fresh))
	return nil
}

// begin takes in a scope, unless it is there.
func (s *Series) begin(c *scope) {
	if c.index < s.scopes.len {
		return
	}
	c.begins, _, _ = s.format.ParseScope(c.values) // They are a scope's.
	name := scopeName(c.values)
	s.byName[name] = c.index
	s.scopeBytes += int64(len(name))
	s.scopes.add(c)
	s.periods.Set(c.index)
	s.hash.Add(c.hashHeader())
}

func (t *taking) expires(d *Definition) int64 {
	in := d.ExpiresIn
	if t.ExpiresIn != 0 {
		in = t.ExpiresIn
	}
	switch {
	case in == 0:
		return 0
	case t.now > math.MaxInt64-int64(in):
		return math.MaxInt64
	}
	return t.now + int64(in)
}

// refuseEnd finds why a caller's end cannot be that of its numbers: one that is over at once
// voids them, and one that is late is not what the definition promised.
func (s *Series) refuseEnd(in time.Duration) error {
	most := cmp.Or(s.definition.ExpiresIn, MaxExpiresIn)
	if least := min(MinExpiresIn, most); in != 0 && (in < least || in > most) {
		return invalid("expires_in", fmt.Sprintf("is not from %v to %v", least, most))
	}
	return nil
}

// refuse finds why numbers cannot be given.
func (s *Series) refuse(t *taking, c *scope, first int64) error {
	if err := s.refuseMore(t, c); err != nil || len(t.fresh) == 0 {
		return err
	}
	last := first + int64(len(t.fresh)) - 1
	d := &s.definition
	switch {
	case c.index >= MaxScopes:
		return full(MaxScopes, "scopes")
	case t.Date > t.Today+d.maxAhead():
		return invalid("date", fmt.Sprintf("%s is after %s, and today is %s", t.Date, t.Today+d.maxAhead(), t.Today))
	case d.Order != OrderAny && t.Date < s.lastDate(c, t.now):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK, "date",
			"date %s is before %s, that of the last number", t.Date, s.lastDate(c, t.now))
	case d.MaxKeys > 0 && s.tooManyKeys(t.fresh):
		return full(d.MaxKeys, "keys")
	case last > s.most():
		return &format.FullError{Number: last, Most: s.format.Most()}
	}
	return nil
}

// refuseMore finds why more numbers of a scope cannot be open: of that of the call, or of
// those that kept ones are in.
func (s *Series) refuseMore(t *taking, c *scope) error {
	if len(t.kept) == 0 {
		return s.refuseOpen(t, c, int64(len(t.fresh)))
	}
	more := map[*scope]int64{}
	for at := range t.kept {
		more[s.scopes.at(at.scope())]++
	}
	if len(t.fresh) > 0 {
		more[c] += int64(len(t.fresh))
	}
	// In the scopes' order, so that every node names the same one.
	for _, own := range slices.SortedFunc(maps.Keys(more), func(a, b *scope) int { return a.index - b.index }) {
		if err := s.refuseOpen(t, own, more[own]); err != nil {
			return err
		}
	}
	return nil
}

// refuseOpen finds why more numbers of a scope cannot be open.
func (s *Series) refuseOpen(t *taking, c *scope, more int64) error {
	limit := s.definition.openLimit()
	switch {
	case c.closed:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED, "values",
			"%s is closed, its last number is %d", name(c.values), c.last)
	case limit == 0 || c.count[Open]+more <= limit:
		return nil
	}
	if open := c.count[Open] - c.ended(s.goneBy(t.now)); open+more > limit {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN, "keys",
			"%d numbers are open, and at most %d may be; the lowest is that of key %q", open, limit, s.oldest(c, t.now))
	}
	return nil
}

// tooManyKeys reports whether there would be more than the definition allows.
func (s *Series) tooManyKeys(fresh []string) bool {
	known, _ := s.Keys()
	more, _ := s.Unknown(fresh)
	return known+more > s.definition.MaxKeys
}

// bind gives a key a number: a new one, or one that another key had.
func (s *Series) bind(t *taking, c *scope, key string, number, expires int64) {
	s.detach(key)
	taken := t.now
	if number <= c.last {
		taken = max(taken, c.at(number).taken+1) // A merge tells by it which of two keys got the number later.
	}
	if number > c.last {
		number = c.add()
	} else if r := c.at(number); r.key() != "" {
		s.index.drop(r.key())
		s.lose(strings.Clone(r.key()), lostKey{number: number, released: r.state == Released})
	}
	c.change(number, func(r *record) {
		*r = record{taken: taken, expires: expires, date: t.Date, state: Open}
		r.write(key, t.Label, "")
	})
	s.index.set(key, refOf(c.index, number))
}

// detach takes a key's released number from it, and forgets that it had another.
func (s *Series) detach(key string) {
	if at := s.index.find(key); at != 0 {
		s.index.drop(key)
		s.scopes.own(at.scope()).change(at.number(), func(r *record) { r.write("", "", r.reason()) })
	}
	s.regain(key)
}

// lose notes that a key's number belongs to another.
func (s *Series) lose(key string, l lostKey) {
	s.lost.Set(key, l)
	s.lostBytes += int64(len(key))
	s.hash.Add(l.hash(key))
}

// regain forgets that a key had a number.
func (s *Series) regain(key string) {
	if l, ok := s.lost.Delete(key); ok {
		s.lostBytes -= int64(len(key))
		s.hash.Remove(l.hash(key))
	}
}
