// Package table holds what the state knows of each name: found by hash, listed
// in order, frozen in no time.
//
// A busy cluster looks a name up for every identity it gives, and seldom makes a
// new one. So a value lies beside its name in a page and is found through a hash
// table: a few reads of memory, however many names there are. The order is kept
// in a tree of places, which changes only with the set of names.
package table

import (
	"hash/maphash"
	"math"
	"sort"
	"strings"

	"github.com/tidwall/btree"
)

// pageSize is how many entries a page holds: what is copied when an entry is
// changed for the first time after a Freeze. Freeze itself copies a pointer per
// page.
const pageSize = 128

// Entry is what is known of one name.
type Entry[V any] struct {
	// Database is the number of the database that the name belongs to.
	Database uint32
	// Name is the name, unique within its database.
	Name string
	// Value is what is known of it.
	Value V
}

// Ref is where an entry lies, until it is deleted.
type Ref uint32

// none is the Ref of no entry.
const none = ^Ref(0)

// Table is a set of entries. One goroutine at a time may change it, and nobody
// else may use it then; without a change any number may read. What Freeze
// returned may be read at any time.
type Table[V any] struct {
	// seed is drawn at random, which nobody can see: the hash decides about no order.
	seed maphash.Seed
	// mask has the bits of the hash that count: all, but in tests.
	mask    uint64
	buckets buckets
	pages   []*page[V]
	// free has the places of deleted entries; used counts the places ever used.
	free []Ref
	used Ref
	// generation counts the Freezes. A page of an older one may be shared.
	generation uint32
	// order has the places of all entries, by database and name.
	order *btree.BTreeG[Ref]
	// hint makes inserting names in their order quick, as they come in a snapshot.
	hint btree.PathHint
}

// page is a run of slots.
type page[V any] struct {
	generation uint32
	slots      [pageSize]slot[V]
}

// slot is the place of an entry.
type slot[V any] struct {
	name     string
	value    V
	database uint32
	// older is the next entry of the same bucket.
	older Ref
}

func (s *slot[V]) entry() Entry[V] {
	return Entry[V]{Database: s.database, Name: s.name, Value: s.value}
}

// before says whether an entry comes before a name in the order of the table.
func (s *slot[V]) before(database uint32, name string) bool {
	if s.database != database {
		return s.database < database
	}
	return s.name < name
}

// New returns an empty table.
func New[V any]() *Table[V] {
	t := &Table[V]{seed: maphash.MakeSeed(), mask: math.MaxUint64, buckets: newBuckets()}
	t.order = btree.NewBTreeGOptions(t.less, btree.Options{NoLocks: true})
	return t
}

// less compares entries that are in the table.
func (t *Table[V]) less(a, b Ref) bool {
	other := t.slot(b)
	return t.slot(a).before(other.database, other.name)
}

// Len counts the entries.
func (t *Table[V]) Len() int { return t.order.Len() }

// Find returns where the entry of a name lies; false if there is none.
func (t *Table[V]) Find(database uint32, name string) (Ref, bool) {
	for ref := *t.bucket(database, name); ref != none; ref = t.slot(ref).older {
		if s := t.slot(ref); s.database == database && s.name == name {
			return ref, true
		}
	}
	return none, false
}

// At returns the entry at a place.
func (t *Table[V]) At(ref Ref) Entry[V] { return t.slot(ref).entry() }

// Get returns the value of a name; false if there is none.
func (t *Table[V]) Get(database uint32, name string) (value V, ok bool) {
	ref, ok := t.Find(database, name)
	if !ok {
		return value, false
	}
	return t.slot(ref).value, true
}

// Set changes the value of the entry at a place.
func (t *Table[V]) Set(ref Ref, value V) { t.own(ref).value = value }

// Insert adds an entry whose name is not in the table, and keeps a copy of the
// name. It returns where the entry lies.
func (t *Table[V]) Insert(e Entry[V]) Ref {
	ref := t.place()
	bucket := t.bucket(e.Database, e.Name)
	// The name may be part of a large message that should not live on.
	*t.own(ref) = slot[V]{name: strings.Clone(e.Name), value: e.Value, database: e.Database, older: *bucket}
	*bucket = ref
	t.order.SetHint(ref, &t.hint)
	if bucketsPerEntry*t.order.Len() > t.buckets.count {
		for range bucketsPerEntry {
			t.split()
		}
	}
	return ref
}

// Delete removes the entry at a place.
func (t *Table[V]) Delete(ref Ref) {
	t.order.Delete(ref)
	s := t.own(ref)
	t.unlink(t.bucket(s.database, s.name), ref, s.older)
	*s = slot[V]{}
	t.free = append(t.free, ref)
}

// Ascend calls f for the entries from a name on, in the order of databases and
// of the names' bytes, until f returns false.
func (t *Table[V]) Ascend(database uint32, from string, f func(Entry[V]) bool) {
	first := sort.Search(t.order.Len(), func(rank int) bool {
		ref, _ := t.order.GetAt(rank)
		return !t.slot(ref).before(database, from)
	})
	if begin, ok := t.order.GetAt(first); ok {
		t.order.Ascend(begin, func(ref Ref) bool { return f(t.At(ref)) })
	}
}

// place returns a place for a new entry.
func (t *Table[V]) place() Ref {
	if n := len(t.free); n > 0 {
		ref := t.free[n-1]
		t.free = t.free[:n-1]
		return ref
	}
	if t.used%pageSize == 0 {
		t.pages = append(t.pages, &page[V]{generation: t.generation})
	}
	t.used++
	return t.used - 1
}

// slot returns a place to read.
func (t *Table[V]) slot(ref Ref) *slot[V] { return &t.pages[ref/pageSize].slots[ref%pageSize] }

// own returns a place to write: in a page that no Frozen shares.
func (t *Table[V]) own(ref Ref) *slot[V] {
	p := t.pages[ref/pageSize]
	if p.generation != t.generation {
		mine := *p
		mine.generation = t.generation
		p = &mine
		t.pages[ref/pageSize] = p
	}
	return &p.slots[ref%pageSize]
}
