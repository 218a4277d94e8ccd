// Package table holds the state's values by name: found by hash, listed in order, frozen
// in constant time.
//
// A busy cluster looks a name up for every identity it issues, and seldom adds a name. So a value
// lies beside its name in a slab and is found through a hash table: two reads of memory, however
// many names there are. The order is kept in a tree of places, which changes only with the set of
// names. Only a long name is an object of its own, so that the garbage collector's work does not
// grow with the number of names.
package table

import (
	"hash/maphash"
	"iter"
	"math"
	"sort"

	"github.com/tidwall/btree"
)

// slabSize is the number of entries in a slab, which is copied at the first change of an entry
// after a Freeze.
const slabSize = 64

// pageSize is how many slabs a page has. Freeze itself copies a pointer for each page.
const pageSize = 64

// inline is how many bytes of a name are stored beside its value: a slot with a number as
// its value then fills a cache line.
const inline = 46

// Entry is a name with its value.
type Entry[V any] struct {
	// Database is the number of the database that the name belongs to.
	Database uint32
	// Name is the name, unique within its database.
	Name string
	// Value is the value of the name.
	Value V
}

// Ref is where an entry lies, until it is deleted.
type Ref uint32

const none = ^Ref(0)

// Table is a set of entries. One goroutine at a time may change it, without concurrent
// reads; otherwise any number may read. A Frozen may be read at any time.
type Table[V any] struct {
	// seed is random, without visible effect: no order depends on the hash.
	seed maphash.Seed
	// mask has the bits of the hash that count: all, but in tests.
	mask    uint64
	buckets buckets
	pages   []*page[V]
	// free has the places of deleted entries; used counts the places ever used.
	free []Ref
	used Ref
	// generation counts the Freezes. A slab of an older generation may be shared.
	generation uint32
	// order has the places of all entries, by database and name.
	order *btree.BTreeG[Ref]
	// hint makes inserting names in their order quick, as they come in a snapshot.
	hint btree.PathHint
}

// New returns an empty table.
func New[V any]() *Table[V] {
	t := &Table[V]{seed: maphash.MakeSeed(), mask: math.MaxUint64, buckets: newBuckets()}
	t.order = btree.NewBTreeGOptions(t.less, btree.Options{NoLocks: true})
	return t
}

// less compares entries that are in the table.
func (t *Table[V]) less(a, b Ref) bool {
	p, at := t.slab(b)
	return t.before(a, p.slots[at].database, p.name(at))
}

// before reports whether an entry comes before a name in the order of the table.
func (t *Table[V]) before(ref Ref, database uint32, name []byte) bool {
	p, at := t.slab(ref)
	if s := &p.slots[at]; s.database != database {
		return s.database < database
	}
	return string(p.name(at)) < string(name)
}

// Len counts the entries.
func (t *Table[V]) Len() int { return t.order.Len() }

// Find returns where the entry of a name lies; false if there is none.
func (t *Table[V]) Find(database uint32, name string) (Ref, bool) {
	for ref := *t.buckets.of(t.hash(database, name)); ref != none; {
		p, at := t.slab(ref)
		s := &p.slots[at]
		if s.database == database && string(p.name(at)) == name {
			return ref, true
		}
		ref = s.older
	}
	return none, false
}

// Value returns the value of the entry at a reference.
func (t *Table[V]) Value(ref Ref) V {
	p, at := t.slab(ref)
	return p.slots[at].value
}

// Get returns the value of a name; false if there is none.
func (t *Table[V]) Get(database uint32, name string) (value V, ok bool) {
	ref, ok := t.Find(database, name)
	if !ok {
		return value, false
	}
	return t.Value(ref), true
}

// Set changes the value of the entry at a reference.
func (t *Table[V]) Set(ref Ref, value V) {
	p, at := t.writable(ref)
	p.slots[at].value = value
}

// Insert adds an entry whose name is not in the table, and has at most 65,535
// bytes; it keeps a copy of the name. It returns where the entry lies.
func (t *Table[V]) Insert(e Entry[V]) Ref {
	ref := t.place(e)
	t.order.SetHint(ref, &t.hint)
	if bucketsPerEntry*t.order.Len() > t.buckets.count {
		for range bucketsPerEntry {
			t.split()
		}
	}
	return ref
}

// Append is Insert of an entry that comes behind all others, as those of a snapshot do; false if it does not,
// or if an entry was deleted. It is quicker, and takes long where the hash table is full: then that grows as a whole.
func (t *Table[V]) Append(e Entry[V]) bool {
	if last, ok := t.order.Max(); len(t.free) > 0 || ok && !t.behind(e.Database, e.Name, last) {
		return false
	}
	t.order.Load(t.place(e))
	if bucketsPerEntry*t.order.Len() > t.buckets.count {
		t.grow()
	}
	return true
}

// behind reports whether a name comes behind an entry.
func (t *Table[V]) behind(database uint32, name string, ref Ref) bool {
	p, at := t.slab(ref)
	if s := &p.slots[at]; s.database != database {
		return s.database < database
	}
	return string(p.name(at)) < name
}

// place stores an entry, which is not in the order yet.
func (t *Table[V]) place(e Entry[V]) Ref {
	ref := t.newRef()
	bucket := t.buckets.of(t.hash(e.Database, e.Name))
	p, at := t.writable(ref)
	p.put(at, e, *bucket)
	*bucket = ref
	return ref
}

// Delete removes the entry at a reference.
func (t *Table[V]) Delete(ref Ref) {
	t.order.Delete(ref)
	p, at := t.writable(ref)
	t.unlink(t.bucket(p, at), ref, p.slots[at].older)
	p.clear(at)
	t.free = append(t.free, ref)
}

// Ascend calls f for the entries from a name on, in the order of databases and
// of the names' bytes, until f returns false.
func (t *Table[V]) Ascend(database uint32, from string, f func(Entry[V]) bool) {
	first := sort.Search(t.order.Len(), func(rank int) bool {
		ref, _ := t.order.GetAt(rank)
		return !t.before(ref, database, []byte(from))
	})
	if begin, ok := t.order.GetAt(first); ok {
		t.order.Ascend(begin, func(ref Ref) bool {
			p, at := t.slab(ref)
			return f(p.entry(at))
		})
	}
}

// Of yields the entries of a database from a name on, in order.
func (t *Table[V]) Of(database uint32, from string) iter.Seq[Entry[V]] {
	return func(yield func(Entry[V]) bool) {
		t.Ascend(database, from, func(e Entry[V]) bool { return e.Database == database && yield(e) })
	}
}

func (t *Table[V]) newRef() Ref {
	if n := len(t.free); n > 0 {
		ref := t.free[n-1]
		t.free = t.free[:n-1]
		return ref
	}
	ref := t.used
	t.used++
	if ref%(pageSize*slabSize) == 0 {
		t.pages = append(t.pages, &page[V]{generation: t.generation})
	}
	if ref%slabSize == 0 {
		t.ownPage(ref)
		p, _ := t.slab(ref)
		*p = newSlab[V](t.generation)
	}
	return ref
}

// slab returns the slab of a reference, to read, and which of its slots it is.
func (t *Table[V]) slab(ref Ref) (*slab[V], int) {
	return slabAt(t.pages, ref), int(ref % slabSize)
}

// writable returns the same to write: a slab that no Frozen shares.
func (t *Table[V]) writable(ref Ref) (*slab[V], int) {
	p, at := t.slab(ref)
	if p.generation != t.generation {
		t.ownPage(ref)
		p, _ = t.slab(ref)
		*p = p.copy(t.generation)
	}
	return p, at
}

// ownPage replaces the page of a reference by a copy, if a Frozen shares it.
func (t *Table[V]) ownPage(ref Ref) {
	if p := &t.pages[ref/(pageSize*slabSize)]; (*p).generation != t.generation {
		own := **p
		own.generation = t.generation
		*p = &own
	}
}
