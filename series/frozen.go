package series

import (
	"github.com/tidwall/btree"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Frozen is a series as it was. Any goroutine may read it while the series changes.
type Frozen struct {
	rules
	all  *btree.Map[int32, *scope]
	lost *btree.Map[string, lostKey]
}

// Freeze returns the series as it is now. It copies nothing: the series copies the scopes that
// change afterwards, and of their numbers 256 at a time.
func (s *Series) Freeze() Frozen {
	return Frozen{rules: s.rules, all: s.scopes.freeze(), lost: s.lost.Copy()}
}

// Record returns the series without its numbers and its name, and what its numbers say of
// themselves where they are merged. It may look at all numbers.
func (f Frozen) Record() (*raftlogv1.SeriesRecord, *raftlogv1.SeriesOrigin) {
	final := f.final()
	return &raftlogv1.SeriesRecord{
		Definition: DefinitionMessage(f.definition), Version: f.version, Suspended: f.suspended, TimeUnixNano: f.now,
		VoidedUntilUnixNano: f.voidedUntil, SinceUnixNano: f.since, Final: final,
		Forgetting: uint32(f.forgetting), Secret: []byte(f.secret),
	}, f.origin(func() bool { return final })
}

// final reports whether a number is confirmed or voided.
func (f Frozen) final() bool {
	for c := range f.scopes {
		if c.count[Confirmed]+c.count[Voided] > 0 {
			return true
		}
	}
	for c := range f.scopes {
		for slab := range c.slabs {
			for i := range slab.records {
				if state, _ := f.stateOf(&slab.records[i]); state == Confirmed || state == Voided {
					return true
				}
			}
		}
	}
	return false
}

// Pieces yields all numbers, at most 256 of a scope at a time: the scopes in the order in which
// they began, each from its first number on, and then those from before it. Only a scope without numbers has a
// piece without. There are very many, so one message is reused for all.
func (f Frozen) Pieces(yield func(*raftlogv1.SeriesNumbersRecord) bool) {
	m, stored := &raftlogv1.SeriesNumbersRecord{}, make([]*raftlogv1.SeriesStored, 0, slabSize)
	piece := func(records []record) bool {
		for len(stored) < len(records) {
			stored = append(stored, &raftlogv1.SeriesStored{})
		}
		m.Numbers = stored[:len(records)]
		for i := range records {
			records[i].fill(stored[i])
		}
		return yield(m)
	}
	for c := range f.scopes {
		m.Scope, m.Closed, m.Begin, m.First, m.Numbers = c.values, c.closed, 0, c.offset+1, nil
		if c.offset > 0 {
			m.Begin = c.offset + 1
		}
		m.Allotments, m.Allotted = c.allotted.messages()
		if len(c.pages) == 0 && !yield(m) {
			return
		}
		for slab := range c.slabs {
			if !piece(slab.records) {
				return
			}
			m.First += slabSize
		}
		for first, records := range c.entered.runs {
			if m.First = first; !piece(records) {
				return
			}
		}
	}
}

// scopes yields all scopes.
func (f Frozen) scopes(yield func(*scope) bool) {
	f.all.Scan(func(_ int32, c *scope) bool { return yield(c) })
}

// Lost yields the keys whose numbers were given to others, in their order.
func (f Frozen) Lost(yield func(*raftlogv1.SeriesLostRecord) bool) {
	f.lost.Scan(func(key string, l lostKey) bool {
		return yield(&raftlogv1.SeriesLostRecord{Key: key, Number: l.number, Released: l.released})
	})
}
