package series

import (
	"slices"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Series is a series of document numbers, and a View at the newest time that a call had.
type Series struct{ View }

// View is a series at a time. It reads the series, and ends with the series' next change.
type View struct {
	rules
	*contents
}

// rules are what a series is without its scopes, numbers and keys.
type rules struct {
	definition Definition
	version    int64
	// since is when the numbers began, or began anew. It tells series of one name apart.
	since int64
	// now is the newest time that a call had, or the time of a view.
	now int64
	// suspended means that it gives no numbers: a restored one may lack the newest.
	suspended bool
	// forgetting is above 0 while the series is being suspended: scopes of an index from forgetting-1 on may have
	// numbers that are still to be forgotten.
	forgetting int32
	// voidedUntil is when the policy stopped to void numbers whose time had ended. Those that
	// ended until then are voided.
	voidedUntil int64
	// secret is what scrambled numbers depend on; empty where there are none.
	secret string
}

// contents are the scopes, numbers and keys of a series, whose texts have a format.
type contents struct {
	format *format.Format
	scopes scopeTable
	keyTable
}

func newContents(f *format.Format) *contents {
	x := &contents{format: f, scopes: newScopeTable()}
	x.keyTable = newKeyTable(func(r ref) string { return x.scopes.at(r.scope()).at(r.number()).key() })
	return x
}

// New returns an empty series, of version 1, with scopes that begin above 1. The errors are *Error
// and those of format.Define.
func New(d Definition, begins ...*raftlogv1.SeriesBegin) (*Series, error) {
	f, err := format.Define(d.Format, d.Reset)
	if err != nil {
		return nil, err
	}
	if err := d.check(f); err != nil {
		return nil, err
	}
	s := &Series{View{rules{definition: d, version: 1}, newContents(f)}}
	if err := s.checkBegins(&d, begins); err != nil {
		return nil, err
	}
	s.moveTo(begins)
	return s, nil
}

// Scramble has the texts of a series that has just begun, or begun anew, depend on a secret, of which 32 bytes
// count. It does nothing if the format has no scrambled number.
func (s *Series) Scramble(secret []byte) {
	s.secret = ""
	if s.format.Scrambled() {
		s.secret = string(secret[:min(len(secret), MaxSecretBytes)])
		s.format = s.format.WithSecret([]byte(s.secret))
	}
}

// BeginAt says when the series begins, of which a series of that name may be another one.
func (s *Series) BeginAt(now int64) { s.since = s.advance(now) }

// At returns the series at a time, or at the newest one that a call had.
func (s *Series) At(now int64) *View {
	v := s.View
	v.advance(now)
	return &v
}

// Definition returns what the series was last asked to be, and how often.
func (s *rules) Definition() (Definition, int64) { return s.definition, s.version }

// Since returns when the numbers began, or began anew. Two definitions of a name that have the
// same version differ in it, unless the leader's clock was set back to the very nanosecond.
func (s *rules) Since() int64 { return s.since }

// Suspended reports whether the series gives no numbers. What it has can be confirmed,
// voided and released.
func (s *rules) Suspended() bool { return s.suspended }

// CheckPresent refuses what another definition than the present one made. The error is *Error.
func (s *rules) CheckPresent(version, since int64) error {
	if version != s.version || since != s.since {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "series", "the series was defined anew while the call went on")
	}
	return nil
}

// advance returns the time of a call: it never goes back.
func (s *rules) advance(now int64) int64 {
	s.now = max(s.now, now)
	return s.now
}

// Format returns the format of the series' texts.
func (x *contents) Format() *format.Format { return x.format }

// most returns the greatest number of a scope.
func (x *contents) most() int64 { return mostOf(x.format) }

func mostOf(f *format.Format) int64 { return min(f.Most(), maxNumber) }

// dated reports whether a date is in a scope.
func (x *contents) dated(c *scope, d format.Date) bool {
	values, err := x.format.Scope(d, c.given())
	return err == nil && slices.Equal(values, c.values)
}

// scopeOf returns the scope with some values; a new one is not begun yet.
func (x *contents) scopeOf(values []string) (*scope, error) {
	if c := x.scopes.lookUp(values); c != nil {
		return c, nil
	}
	if x.scopes.len() >= MaxScopes {
		return nil, invalid("scope", "is one too many")
	}
	begins, given, err := x.format.ParseScope(values)
	if err != nil {
		return nil, err
	}
	values, err = x.format.Scope(begins, given)
	return x.scopes.fresh(values, len(given), begins), err
}

// NewNames returns how many of some keys and scopes the series does not have, and how many bytes
// the keys and the names of the scopes have.
func (x *contents) NewNames(keys []string, scopes [][]string) (count, bytes int64) {
	for _, key := range keys {
		if !x.Knows(key) {
			count, bytes = count+1, bytes+int64(len(key))
		}
	}
	for _, values := range scopes {
		name := ScopeName(values)
		if _, known := x.scopes.byName[name]; !known {
			count, bytes = count+1, bytes+int64(len(name))
		}
	}
	return count, bytes
}

// record returns the scope of a number, and what is stored of it, to read them.
func (x *contents) record(at ref) (*scope, *record) {
	c := x.scopes.at(at.scope())
	return c, c.at(at.number())
}
