package table

import (
	"slices"

	"github.com/tidwall/btree"
)

// Frozen is a table as of one moment. Any number of goroutines may read it concurrently
// with changes of the table.
type Frozen[V any] struct {
	pages []*page[V]
	order *btree.BTreeG[Ref]
}

// Freeze returns the table as it is now. It copies a word for every 4,096
// entries, and each page and each slab is copied when it is changed for the first time
// afterwards. It counts as a change of the table.
func (t *Table[V]) Freeze() Frozen[V] {
	t.generation++
	return Frozen[V]{pages: slices.Clone(t.pages), order: t.order.Copy()}
}

// Scan calls f for all entries, in the order of databases and of the names'
// bytes, until f returns false.
func (f Frozen[V]) Scan(each func(Entry[V]) bool) {
	f.order.Scan(func(ref Ref) bool {
		return each(slabAt(f.pages, ref).entry(int(ref % slabSize)))
	})
}
