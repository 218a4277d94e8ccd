package table

// page is a run of slabs, and the generation that owns their headers.
type page[V any] struct {
	slabs      [pageSize]slab[V]
	generation uint32
}

func slabAt[V any](pages []*page[V], ref Ref) *slab[V] {
	return &pages[ref/(pageSize*slabSize)].slabs[ref/slabSize%pageSize]
}

// slab is a run of slots, and the generation that owns it.
type slab[V any] struct {
	// slots is a separate object: without pointers in the values the garbage collector
	// does not scan it, and a slot with a number as its value is one cache line.
	slots *[slabSize]slot[V]
	// long has the names that do not fit into their slots; nil without such names.
	long *[slabSize][]byte
	// generation is that of the table when the slab was made, or copied.
	generation uint32
}

type slot[V any] struct {
	value    V
	database uint32
	// older is the next entry of the same bucket.
	older Ref
	// length is that of the name, which is in text, or in the slab's long names.
	length uint16
	text   [inline]byte
}

func newSlab[V any](generation uint32) slab[V] {
	return slab[V]{slots: new([slabSize]slot[V]), generation: generation}
}

// name returns the name of an entry. It is valid until the entry is deleted.
func (p *slab[V]) name(at int) []byte {
	s := &p.slots[at]
	if s.length > inline {
		return p.long[at]
	}
	return s.text[:s.length]
}

func (p *slab[V]) entry(at int) Entry[V] {
	s := &p.slots[at]
	return Entry[V]{Database: s.database, Name: string(p.name(at)), Value: s.value}
}

func (p *slab[V]) put(at int, e Entry[V], older Ref) {
	s := &p.slots[at]
	*s = slot[V]{value: e.Value, database: e.Database, older: older, length: uint16(len(e.Name))}
	if len(e.Name) <= inline {
		copy(s.text[:], e.Name)
		return
	}
	if p.long == nil {
		p.long = new([slabSize][]byte)
	}
	p.long[at] = []byte(e.Name)
}

func (p *slab[V]) clear(at int) {
	p.slots[at] = slot[V]{}
	if p.long != nil {
		p.long[at] = nil
	}
}

// copy returns a slab of a generation that shares nothing that changes.
func (p *slab[V]) copy(generation uint32) slab[V] {
	slots := *p.slots
	mine := slab[V]{slots: &slots, generation: generation}
	if p.long != nil {
		long := *p.long
		mine.long = &long
	}
	return mine
}
