package table

import "hash/maphash"

const bucketSlab = 1024

// bucketsPerEntry makes most chains one entry long: another entry costs two memory reads,
// an empty bucket four bytes.
const bucketsPerEntry = 2

// buckets is the array of a linear hash table (Litwin, 1980): it grows by one bucket at a time,
// whose entries come from one other bucket, so that no insertion takes as long as doubling an
// array. A bucket is the newest entry of a chain. Go's map takes 35 bytes for an entry at a million
// entries, this takes 8.
type buckets struct {
	slabs []*[bucketSlab]Ref
	// count is the number of buckets; half is a power of two with half < count ≤ 2·half, except for
	// the first bucket.
	count int
	half  int
}

func newBuckets() buckets {
	b := buckets{half: 1}
	b.add()
	return b
}

func (b *buckets) of(hash uint64) *Ref {
	n := int(hash & uint64(2*b.half-1))
	if n >= b.count {
		n -= b.half
	}
	return b.at(n)
}

func (b *buckets) at(n int) *Ref { return &b.slabs[n/bucketSlab][n%bucketSlab] }

func (b *buckets) add() {
	if b.count%bucketSlab == 0 {
		b.slabs = append(b.slabs, new([bucketSlab]Ref))
	}
	if b.count == 2*b.half {
		b.half = b.count
	}
	b.count++
	*b.at(b.count - 1) = none
}

func (t *Table[V]) hash(database uint32, name string) uint64 {
	return t.mix(database, maphash.String(t.seed, name))
}

// mix mixes a database's number into the hash of a name.
func (t *Table[V]) mix(database uint32, name uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15 // Spreads the databases' small numbers over all bits.
	return (name ^ uint64(database)*odd) & t.mask
}

// bucket returns the bucket of an entry.
func (t *Table[V]) bucket(p *slab[V], at int) *Ref {
	return t.buckets.of(t.mix(p.slots[at].database, maphash.Bytes(t.seed, p.name(at))))
}

// split adds a bucket, and moves its entries into it.
func (t *Table[V]) split() {
	t.buckets.add()
	source := t.buckets.at(t.buckets.count - 1 - t.buckets.half)
	rest := *source
	*source = none
	for rest != none {
		ref := rest
		p, at := t.writable(ref)
		s, bucket := &p.slots[at], t.bucket(p, at)
		rest = s.older
		s.older, *bucket = *bucket, ref
	}
}

// grow makes the buckets of a table without deleted entries a quarter more. It passes over the entries in the
// order in which they lie, which is much quicker than as many splits.
func (t *Table[V]) grow() {
	for until := bucketsPerEntry * (t.order.Len() + t.order.Len()/4); t.buckets.count < until; {
		t.buckets.add()
	}
	for _, slab := range t.buckets.slabs {
		for i := range slab {
			slab[i] = none
		}
	}
	for ref := range t.used {
		p, at := t.writable(ref)
		bucket := t.bucket(p, at)
		p.slots[at].older, *bucket = *bucket, ref
	}
}

// unlink takes an entry out of its bucket's chain.
func (t *Table[V]) unlink(link *Ref, ref, older Ref) {
	for *link != ref {
		p, at := t.writable(*link)
		link = &p.slots[at].older
	}
	*link = older
}
