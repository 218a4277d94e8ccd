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

// taking is a request that is judged and not yet done.
type taking struct {
	*Series
	request *raftlogv1.SeriesTake
	// date is the document's date. It decides text and period.
	date format.Date
	// today is the present day. Dates of new numbers are bounded by it.
	today format.Date
	scope *scope // nil if it does not exist yet.
	// fresh are the keys that get new numbers, kept the lapsed numbers that their keys take
	// again: without a date of the caller also those of earlier periods.
	fresh []string
	kept  map[ref]bool
}

// datesOf returns the document's date of a request at a time, and the present day.
func datesOf(now int64, m *raftlogv1.SeriesTake) (date, today format.Date) {
	today = format.DateAt(now, m.GetUtcOffsetSeconds())
	if m.Date == nil {
		return today, today
	}
	return format.Date(m.GetDate()), today
}

// Take gives each key a number, or none. A key that has a number keeps it; look at its
// state, for a number can be voided. The others get consecutive numbers in the order of
// the keys.
//
// Only where the caller gives a date, a key that has a number of another date is refused: a retry
// on the next day is the same call.
//
// A request with a number enters it: its only key has that number already.
//
// The errors are *Error, *format.Error and *format.FullError.
func (s *Series) Take(now int64, m *raftlogv1.SeriesTake) ([]*raftlogv1.SeriesNumber, error) {
	if err := checkTake(m); err != nil {
		return nil, err
	}
	date, today := datesOf(now, m)
	values, err := s.format.Scope(date, m.GetValues())
	if err != nil {
		return nil, err
	}
	if s.suspended {
		return nil, suspended()
	}
	s.advance(now)
	t := &taking{Series: s, request: m, date: date, today: today}
	if c := s.scopes.lookUp(values); c != nil {
		t.scope = s.scopes.own(c.index)
	}
	if err := t.sort(); err != nil {
		return nil, err
	}
	switch {
	case m.GetNumber() != 0:
		err = t.enter(values)
	case len(t.fresh)+len(t.kept) > 0:
		err = t.give(values)
	}
	if err != nil {
		return nil, err
	}
	numbers := make([]*raftlogv1.SeriesNumber, len(m.GetKeys()))
	for i, key := range m.GetKeys() {
		numbers[i], _ = s.WhoHas(key)
	}
	return numbers, nil
}

// Begins returns the scope that a request begins, if it begins one. The only scope of a series
// whose numbers have no parts before them is no name.
func (s *Series) Begins(now int64, m *raftlogv1.SeriesTake) (scopes [][]string) {
	date, _ := datesOf(now, m)
	values, err := s.format.Scope(date, m.GetValues())
	if err != nil || len(values) == 0 || s.scopes.lookUp(values) != nil {
		return nil
	}
	v := s.At(now)
	if !slices.ContainsFunc(m.GetKeys(), func(key string) bool { return v.keptBy(key) == 0 }) {
		return nil
	}
	return [][]string{values}
}

func checkTake(m *raftlogv1.SeriesTake) error {
	if len(m.GetLabel()) > MaxLabelBytes || !visible(m.GetLabel()) {
		return invalid("label", "is longer than 64 bytes, or has invisible characters")
	}
	if in := time.Duration(m.GetExpiresInNanos()); in < 0 || in > MaxExpiresIn {
		return invalid("expires_in", "is not from 0 to 3650 days")
	}
	if err := checkEntered(m); err != nil {
		return err
	}
	return checkKeys(m.GetKeys())
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
		if err := checkKey(key); err != nil {
			return err
		}
		if seen[key] {
			return invalid("keys", "has a key twice")
		}
		if seen != nil {
			seen[key] = true
		}
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return invalid("keys", "has an empty key")
	case len(key) > MaxKeyBytes:
		return invalid("keys", "has a key of more than 128 bytes")
	case !visible(key):
		return invalid("keys", "has a key with invisible characters, or that is not UTF-8")
	}
	return nil
}

// visible reports whether a text cannot look as another one does.
func visible(s string) bool {
	_, invisible := docid.FirstInvisible(s)
	return !invisible && utf8.ValidString(s)
}

// sort finds the keys that have no number, and those that may not have this one.
func (t *taking) sort() error {
	for _, key := range t.request.GetKeys() {
		at := t.index.find(key)
		if at == 0 {
			t.fresh = append(t.fresh, key)
			continue
		}
		c, r := t.record(at)
		if state, _ := t.stateOf(r); state == Released {
			t.fresh = append(t.fresh, key)
			continue
		}
		if t.request.Date != nil && (t.date != r.date || c != t.scope) || !sameValues(c.given(), t.request.GetValues()) {
			return conflict(t.number(c, at.number()))
		}
		if t.lapsed(r) {
			if t.kept == nil {
				t.kept = map[ref]bool{}
			}
			t.kept[at] = true
		}
	}
	return nil
}

// give gives the keys their numbers, if all can have them.
func (t *taking) give(values []string) error {
	c, err := t.newIn(values)
	if err != nil {
		return err
	}
	if err := t.refuseEnd(); err != nil {
		return err
	}
	first := t.run(c)
	if err := t.refuse(c, first); err != nil {
		return err
	}
	expires := t.expires()
	for at := range t.kept {
		t.scopes.own(at.scope()).change(at.number(), func(r *record) { r.expires = expires })
	}
	if len(t.fresh) == 0 {
		return nil
	}
	c = t.scopes.begin(c)
	for i, key := range t.fresh {
		t.bind(c, key, first+int64(i), expires)
	}
	t.settle(c, settledByKey*len(t.fresh))
	return nil
}

// newIn returns the scope of new numbers. One that does not exist yet has not begun.
func (t *taking) newIn(values []string) (*scope, error) {
	if t.scope != nil {
		return t.scope, nil
	}
	begins, given, err := t.format.ParseScope(values)
	if err != nil {
		return nil, err
	}
	return t.scopes.fresh(values, len(given), begins), nil
}

func (t *taking) expires() int64 {
	in := cmp.Or(t.request.GetExpiresInNanos(), int64(t.definition.ExpiresIn))
	switch {
	case in == 0:
		return 0
	case t.now > math.MaxInt64-in:
		return math.MaxInt64
	}
	return t.now + in
}

// refuseEnd finds why a caller's end cannot be that of its numbers: one that is over at once
// voids them, and one that is late is not what the definition promised.
func (t *taking) refuseEnd() error {
	in, most := time.Duration(t.request.GetExpiresInNanos()), cmp.Or(t.definition.ExpiresIn, MaxExpiresIn)
	switch least := min(MinExpiresIn, most); {
	case in == 0 || in >= least && in <= most:
		return nil
	case least == most:
		return invalid("expires_in", fmt.Sprintf("is not %v, the definition's", most))
	default:
		return invalid("expires_in", fmt.Sprintf("is not from %v to %v", least, most))
	}
}

// refuse finds why numbers cannot be given.
func (t *taking) refuse(c *scope, first int64) error {
	if err := t.refuseMore(c); err != nil || len(t.fresh) == 0 {
		return err
	}
	if err := t.refuseNew(c); err != nil {
		return err
	}
	return t.refuseLast(c, first+int64(len(t.fresh))-1)
}

// refuseNew finds why no new number of a scope can be that of the request's document.
func (t *taking) refuseNew(c *scope) error {
	d := &t.definition
	if err := d.refuseValues(t.format, t.request.GetValues()); err != nil {
		return err
	}
	switch {
	case c.index >= MaxScopes:
		return full(MaxScopes, "scopes")
	case t.date > t.today+d.maxAhead():
		return invalid("date", fmt.Sprintf("%s is after %s, and today is %s", t.date, t.today+d.maxAhead(), t.today))
	case d.Order != OrderAny && t.date < t.dateBefore(c):
		before := "the last number"
		if t.request.GetNumber() != 0 {
			before = "the number before it"
		}
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK, "date",
			"date %s is before %s, that of %s", t.date, t.dateBefore(c), before)
	case d.MaxKeys > 0 && t.tooManyKeys():
		return full(d.MaxKeys, "keys")
	}
	return nil
}

// dateBefore returns the date before which the request's document cannot be where dates have an order.
func (t *taking) dateBefore(c *scope) format.Date {
	number := t.request.GetNumber()
	if number == 0 {
		return t.lastDate(c)
	}
	if place := c.placeOf(number); place != 0 && c.at(place).state == Unknown {
		return format.FirstDate // It has its date.
	}
	if number <= c.offset {
		_, date := c.entered.below(number)
		return date
	}
	return t.lastDate(c)
}

// refuseLast finds why the last of some consecutive numbers cannot be given.
func (t *taking) refuseLast(c *scope, place int64) error {
	last, err := c.reach(place, t.today, t.date)
	switch {
	case err != nil:
		return err
	case last > t.most():
		return &format.FullError{Number: last, Most: t.format.Most()}
	}
	return t.refuseText(c, last)
}

// refuseText finds that the text of a number would be too long.
func (t *taking) refuseText(c *scope, number int64) error {
	if d := &t.definition; number > d.most(t.format, c.given()) {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, "keys",
			"number %d does not fit: its text would have more than %d characters", number, d.MaxLength)
	}
	return nil
}

// refuseMore finds why more numbers cannot be open, in the call's scope or those of kept ones.
func (t *taking) refuseMore(c *scope) error {
	if len(t.kept) == 0 {
		return t.refuseOpen(c, int64(len(t.fresh)))
	}
	more := map[*scope]int64{}
	for at := range t.kept {
		more[t.scopes.at(at.scope())]++
	}
	if len(t.fresh) > 0 {
		more[c] += int64(len(t.fresh))
	}
	// In the scopes' order, so that every node names the same one.
	for _, own := range slices.SortedFunc(maps.Keys(more), func(a, b *scope) int { return int(a.index - b.index) }) {
		if err := t.refuseOpen(own, more[own]); err != nil {
			return err
		}
	}
	return nil
}

// refuseOpen finds why more numbers of a scope cannot be open.
func (t *taking) refuseOpen(c *scope, more int64) error {
	limit := t.definition.openLimit()
	switch {
	case c.closed:
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED, "values",
			"%s is closed, its last number is %d", name(c.values), c.lastNumber())
	case limit == 0 || more == 0 || c.count[Open]+more <= limit:
		return nil
	}
	if open := c.count[Open] - c.ended(t.goneBy()); open+more > limit {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN, "keys",
			"%d numbers are open, and at most %d may be; the lowest is that of key %q", open, limit, t.oldest(c))
	}
	return nil
}

// tooManyKeys reports whether there would be more than the definition allows.
func (t *taking) tooManyKeys() bool {
	known, _ := t.Keys()
	more, _ := t.NewNames(t.fresh, nil)
	return known+more > t.definition.MaxKeys
}

// bind gives a key a number: a new one, or one that another key had.
func (t *taking) bind(c *scope, key string, number, expires int64) {
	t.detach(key)
	taken := t.now
	if number > c.last {
		number = c.addAllotted(t.today)
	} else {
		r := c.at(number)
		taken = max(taken, r.taken+1) // A merge tells by it which of two keys got the number later.
		if r.key() != "" {
			t.index.drop(r.key())
			t.lose(strings.Clone(r.key()), lostKey{number: c.numberOf(number), released: r.state == Released})
		}
	}
	c.change(number, func(r *record) {
		*r = record{taken: taken, expires: expires, date: t.date, state: Open}
		r.write(key, t.request.GetLabel(), "")
	})
	t.index.set(key, refOf(c.index, number))
}

// detach takes a key's released number from it, and forgets that it had another.
func (s *Series) detach(key string) {
	if at := s.index.find(key); at != 0 {
		s.index.drop(key)
		s.scopes.own(at.scope()).change(at.number(), func(r *record) { r.write("", "", r.reason()) })
	}
	s.regain(key)
}
