package table

import "hash/maphash"

// Ahead is how many names are looked up at once: about as many reads as a processor has
// in flight, and few enough to be in its nearest cache when they are used.
const Ahead = 32

// Key is the key of an entry.
type Key struct {
	Database uint32
	Name     []byte
}

// Warm reads what Find will read for up to Ahead keys into the processor's caches. The
// memory reads of one lookup depend on each other; those of different names run in
// parallel. It returns a meaningless number, so that the compiler keeps the reads.
//
//go:noinline
func (t *Table[V]) Warm(keys []Key) (touched int) {
	var refs [Ahead]Ref
	for i, k := range keys {
		refs[i] = *t.buckets.of(t.mix(k.Database, maphash.Bytes(t.seed, k.Name)))
	}
	for _, ref := range refs[:len(keys)] {
		if ref != none {
			p, at := t.slab(ref)
			touched += int(p.slots[at].length)
		}
	}
	return touched
}
