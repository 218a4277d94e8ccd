package series

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// scopeTable has the scopes of a series. A frozen copy shares the scopes and the slabs: freezing
// counts the epoch up, and who changes one of an older epoch copies it first.
//
// Invariant: what is of an older epoch does not change.
type scopeTable struct {
	// all has the scopes by their index, in the order in which they began.
	all   *btree.Map[int32, *scope]
	epoch uint32
	// byName has their indexes by name, and nameBytes is how many bytes the names have.
	byName    map[string]int32
	nameBytes int64
	// periods has their indexes by the scopes' values, and then by time.
	periods *btree.BTreeG[int32]
	// hash is the sum of the hashes of all scopes and records.
	hash *statehash.Sum
}

func newScopeTable() scopeTable {
	t := scopeTable{all: &btree.Map[int32, *scope]{}, byName: map[string]int32{}, hash: new(statehash.Sum)}
	t.periods = btree.NewBTreeGOptions(func(i, j int32) bool { return t.at(i).before(t.at(j)) }, btree.Options{NoLocks: true})
	return t
}

func (t *scopeTable) len() int { return t.all.Len() }

// has reports whether a scope has begun.
func (t *scopeTable) has(c *scope) bool { return int(c.index) < t.len() }

// at returns a scope, to read it.
func (t *scopeTable) at(i int32) *scope {
	c, _ := t.all.Get(i)
	return c
}

// own returns a scope, to change it. What at returned before may be another one's since.
func (t *scopeTable) own(i int32) *scope {
	c := t.at(i)
	if c.epoch != t.epoch {
		own := *c
		own.epoch, own.pages, own.entered = t.epoch, slices.Clone(c.pages), c.entered.own()
		c = &own
		t.all.Set(i, c)
	}
	return c
}

// freeze returns a copy of the scopes, which does not change.
func (t *scopeTable) freeze() *btree.Map[int32, *scope] {
	t.epoch++
	return t.all.Copy()
}

// from yields the scopes from one on.
func (t *scopeTable) from(i int) func(yield func(*scope) bool) {
	return func(yield func(*scope) bool) {
		t.all.Ascend(int32(min(i, MaxScopes)), func(_ int32, c *scope) bool { return yield(c) })
	}
}

// fresh returns a scope that has not begun. Of its values, the last ones are those of callers.
func (t *scopeTable) fresh(values []string, given int, begins format.Date) *scope {
	return &scope{
		index: int32(t.len()), epoch: t.epoch, values: together(values), period: uint8(len(values) - given), begins: begins,
		name: hashScopeName(values), hash: t.hash,
	}
}

// begin returns a scope, to change it. A fresh one begins.
func (t *scopeTable) begin(c *scope) *scope {
	if t.has(c) {
		return t.own(c.index)
	}
	name := ScopeName(c.values)
	t.byName[name] = c.index
	t.nameBytes += int64(len(name))
	t.all.Set(c.index, c)
	t.periods.Set(c.index)
	t.hash.Add(c.hashHeader())
	return c
}

// lookUp returns a scope, to read it; nil if there is none.
func (t *scopeTable) lookUp(values []string) *scope {
	i, ok := t.byName[ScopeName(values)]
	if !ok || len(t.at(i).values) != len(values) { // A value with a slash could have the same name.
		return nil
	}
	return t.at(i)
}

// find is lookUp; the error is *Error.
func (t *scopeTable) find(values []string) (*scope, error) {
	if c := t.lookUp(values); c != nil {
		return c, nil
	}
	return nil, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND, "scope", "%s has no numbers", name(values))
}

// periodBefore returns the scope with the same values in the period before; nil if there is none.
func (t *scopeTable) periodBefore(c *scope) (before *scope) {
	t.periods.Descend(c.index, func(i int32) bool {
		d := t.at(i)
		if d != c && sameValues(d.given(), c.given()) {
			before = d
		}
		return d == c
	})
	return before
}

// Scopes returns how many scopes the series has, and how many bytes their names have.
func (x *contents) Scopes() (count, bytes int64) { return int64(x.scopes.len()), x.scopes.nameBytes }
