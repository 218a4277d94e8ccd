package table

import (
	"slices"

	"github.com/tidwall/btree"
)

// Frozen is a table as of one moment. Any number of goroutines may read it concurrently
// with changes of the table.
type Frozen[V any] struct {
	slabs []slab[V]
	order *btree.BTreeG[Ref]
}

// Freeze returns the table as it is now. It copies a few words for every 64
// entries, and each slab is copied when it is changed for the first time
// afterwards. It counts as a change of the table.
func (t *Table[V]) Freeze() Frozen[V] {
	t.generation++
	return Frozen[V]{slabs: slices.Clone(t.slabs), order: t.order.Copy()}
}

// Scan calls f for all entries, in the order of databases and of the names'
// bytes, until f returns false.
func (f Frozen[V]) Scan(each func(Entry[V]) bool) {
	f.order.Scan(func(ref Ref) bool {
		return each(f.slabs[ref/slabSize].entry(int(ref % slabSize)))
	})
}
