package series

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Series is a series of document numbers.
type Series struct {
	rules
	format *format.Format
	scopes list
	byName map[string]int
	// scopeBytes is how many bytes the names of the scopes have.
	scopeBytes int64
	// periods has the scopes by their values, and then by time.
	periods *btree.BTreeG[int]
	index   index
	// lost has the keys whose numbers were given to others.
	lost *btree.Map[string, lostKey]
	// lostBytes is how many bytes these keys have.
	lostBytes int64
	// hash is the sum of the hashes of all records, scopes and lost keys.
	hash statehash.Sum
}

// rules are what a series is without its scopes, numbers and keys.
type rules struct {
	definition Definition
	version    int64
	// since is when the numbers began, or began anew. It tells series of one name apart.
	since int64
	// now is the newest time that a call had.
	now int64
	// suspended means that it gives no numbers: a restored one may lack the newest.
	suspended bool
	// voidedUntil is when the policy stopped to void numbers whose time had ended. Those that
	// ended until then are voided.
	voidedUntil int64
}

// lostKey is what a key had.
type lostKey struct {
	number int64
	// released means that the caller gave it back.
	released bool
}

// New returns an empty series, of version 1, with scopes that begin above 1. The errors are *Error
// and those of format.Define.
func New(d Definition, begins ...*raftlogv1.SeriesBegin) (*Series, error) {
	f, err := format.Define(d.Format, d.Reset)
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	s := &Series{rules: rules{definition: d, version: 1}, format: f}
	s.clear()
	if err := s.checkBegins(begins); err != nil {
		return nil, err
	}
	s.moveTo(begins)
	return s, nil
}

func newLost() *btree.Map[string, lostKey] { return &btree.Map[string, lostKey]{} }

// clear forgets all scopes, numbers and keys. Frozen copies keep theirs.
func (s *Series) clear() {
	s.scopes, s.byName, s.scopeBytes, s.hash = list{}, map[string]int{}, 0, 0
	s.lost, s.lostBytes = newLost(), 0
	s.periods = btree.NewBTreeGOptions(func(i, j int) bool { return s.scopes.at(i).before(s.scopes.at(j)) }, btree.Options{NoLocks: true})
	s.index = newIndex(func(r ref) string { return s.scopes.at(r.scope()).at(r.number()).key() })
}

// BeginAt says when the series begins, of which a series of that name may be another one.
func (s *Series) BeginAt(now int64) { s.since = s.advance(now) }

// Definition returns what the series was last asked to be, and how often.
func (s *Series) Definition() (Definition, int64) { return s.definition, s.version }

// Since returns when the numbers began, or began anew. Two definitions of a name that have the
// same version differ in it, unless the leader's clock was set back to the very nanosecond.
func (s *Series) Since() int64 { return s.since }

// CheckPresent refuses what was made by another definition than the present one. The error is
// *Error.
func (s *Series) CheckPresent(version, since int64) error {
	if version != s.version || since != s.since {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "series", "the series was defined anew while the call went on")
	}
	return nil
}

// Format returns the format of the series' texts.
func (s *Series) Format() *format.Format { return s.format }

// advance returns the time of a call: it never goes back.
func (s *Series) advance(now int64) int64 {
	s.now = max(s.now, now)
	return s.now
}

// number returns what is known of a number at a time.
func (s *Series) number(c *scope, number, now int64) *raftlogv1.SeriesNumber {
	r := c.at(number)
	state, reason := s.stateOf(r, now)
	// The date and the values were checked when the number was given.
	text, _ := s.format.Format(r.date, c.given(), number)
	return &raftlogv1.SeriesNumber{
		Key: r.key(), Label: r.label(), Scope: c.values, Number: number, Text: text, State: uint32(state),
		Overdue: state == Open && r.ended(now), Date: int32(r.date), TakenUnixNano: r.taken, ExpiresUnixNano: r.expires, Reason: reason,
	}
}

// WhoHas returns what is known of a key's number.
func (s *Series) WhoHas(now int64, key string) (*raftlogv1.SeriesNumber, bool) {
	r := s.index.find(key)
	if r == 0 {
		return nil, false
	}
	return s.number(s.scopes.at(r.scope()), r.number(), max(now, s.now)), true
}

// Keys returns how many keys the series knows, also those whose numbers others got, and
// how many bytes these have.
func (s *Series) Keys() (count, bytes int64) {
	return s.index.len + int64(s.lost.Len()), s.index.bytes + s.lostBytes
}

// Scopes returns how many scopes the series has, and how many bytes their names have.
func (s *Series) Scopes() (count, bytes int64) { return int64(s.scopes.len), s.scopeBytes }

// Begins returns the name of the scope that a request begins; "" if it begins none.
func (s *Series) Begins(now int64, q Request) string {
	values, err := s.format.Scope(q.Date, q.Values)
	if err != nil {
		return ""
	}
	name := scopeName(values)
	fresh := func(key string) bool {
		_, kept := s.keptBy(key, max(now, s.now))
		return !kept
	}
	if s.has(name) || !slices.ContainsFunc(q.Keys, fresh) {
		return ""
	}
	return name
}

// NewScopes returns how many of some scopes the series does not have, and how many bytes
// their names have.
func (s *Series) NewScopes(scopes [][]string) (count, bytes int64) {
	for _, values := range scopes {
		if name := scopeName(values); !s.has(name) {
			count, bytes = count+1, bytes+int64(len(name))
		}
	}
	return count, bytes
}

func (s *Series) has(scope string) bool {
	_, ok := s.byName[scope]
	return ok
}

// Unknown returns how many of some keys the series does not know, and how many bytes these
// have.
func (s *Series) Unknown(keys []string) (count, bytes int64) {
	for _, key := range keys {
		if !s.knows(key) {
			count, bytes = count+1, bytes+int64(len(key))
		}
	}
	return count, bytes
}
