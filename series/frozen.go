package series

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/series/format"
)

// Stored is a number as it is stored.
type Stored struct {
	Key, Label string
	State      State
	// Lapsed means that the number is open, that its time has ended, and that another key
	// may get it.
	Lapsed         bool
	Date           format.Date
	Taken, Expires int64
	Reason         string
}

// Piece is a scope, and some of its numbers: at most 256. Only a scope without numbers has a
// piece without.
type Piece struct {
	// Scope has the period, where numbers begin again, and the scope values.
	Scope    []string
	Closed   bool
	LastDate format.Date
	// Begin is the scope's first number, where it is not 1.
	Begin int64
	// First is the number of the first one.
	First   int64
	Numbers []Stored
}

// Lost is a key whose number was given to another.
type Lost struct {
	Key    string
	Number int64
	// Released means that the key's caller gave it back.
	Released bool
}

// Frozen is a series as it was. Any goroutine may read it while the series changes.
type Frozen struct {
	definition Definition
	version    int64
	suspended  bool
	now        int64
	scopes     []frozenScope
	lost       *btree.Map[string, lostKey]
}

// frozenScope has what of a scope is stored.
type frozenScope struct {
	values   []string
	closed   bool
	lastDate format.Date
	offset   int64
	slabs    [][]record
}

// Freeze returns the series as it is now. It takes time for each 256 numbers, and copies
// none: the series copies those that change afterwards.
func (s *Series) Freeze() Frozen {
	f := Frozen{
		definition: s.definition, version: s.version, suspended: s.suspended, now: s.now,
		scopes: make([]frozenScope, len(s.scopes)), lost: s.lost.Copy(),
	}
	for i, c := range s.scopes {
		slabs := make([][]record, len(c.slabs))
		for j := range c.slabs {
			c.slabs[j].frozen = true
			slabs[j] = c.slabs[j].records
		}
		f.scopes[i] = frozenScope{values: c.values, closed: c.closed, lastDate: c.lastDate, offset: c.offset, slabs: slabs}
	}
	return f
}

// Definition returns what the series was asked to be, and how often.
func (f Frozen) Definition() (Definition, int64) { return f.definition, f.version }

// Suspended reports whether it gave no numbers.
func (f Frozen) Suspended() bool { return f.suspended }

// Now returns the newest time of a call.
func (f Frozen) Now() int64 { return f.now }

// Pieces yields all numbers: the scopes in the order in which they began, each from its
// first on.
// A piece's numbers are valid until the next one.
func (f Frozen) Pieces(yield func(Piece) bool) {
	numbers := make([]Stored, 0, slabSize)
	for _, c := range f.scopes {
		p := Piece{Scope: c.values, Closed: c.closed, LastDate: c.lastDate, First: c.offset + 1}
		if c.offset > 0 {
			p.Begin = c.offset + 1
		}
		if len(c.slabs) == 0 && !yield(p) {
			return
		}
		for _, slab := range c.slabs {
			numbers = numbers[:0]
			for j := range slab {
				numbers = append(numbers, slab[j].stored())
			}
			if p.Numbers = numbers; !yield(p) {
				return
			}
			p.First += slabSize
		}
	}
}

// Lost yields the keys whose numbers were given to others, in their order.
func (f Frozen) Lost(yield func(Lost) bool) {
	f.lost.Scan(func(key string, l lostKey) bool { return yield(Lost{Key: key, Number: l.number, Released: l.released}) })
}

func (r *record) stored() Stored {
	return Stored{
		Key: r.key(), Label: r.label(), State: r.state, Lapsed: r.lapsed, Date: r.date,
		Taken: r.taken, Expires: r.expires, Reason: r.reason(),
	}
}
