package series

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/series/format"
)

// Stored is a number as it is stored.
type Stored struct {
	Key, Label string
	State      State
	// Shared means that the number is unknown, and that another key may have got it.
	Shared         bool
	Date           format.Date
	Taken, Expires int64
	Reason         string
}

// Piece is a scope, and some of its numbers: at most 256. Only a scope without numbers has a
// piece without.
type Piece struct {
	// Scope has the period, where numbers begin again, and the scope values.
	Scope  []string
	Closed bool
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
	since      int64
	suspended  bool
	now        int64
	// voidedUntil is that of the series.
	voidedUntil int64
	pages       []page
	lost        *btree.Map[string, lostKey]
}

// Freeze returns the series as it is now. It takes time for each 256 scopes, and copies
// none: the series copies those that change afterwards, and of their numbers 256 at a time.
func (s *Series) Freeze() Frozen {
	return Frozen{
		definition: s.definition, version: s.version, since: s.since, suspended: s.suspended, now: s.now, voidedUntil: s.voidedUntil,
		pages: s.scopes.freeze(), lost: s.lost.Copy(),
	}
}

// Definition returns what the series was asked to be, and how often.
func (f Frozen) Definition() (Definition, int64) { return f.definition, f.version }

// Since returns when its numbers began.
func (f Frozen) Since() int64 { return f.since }

// Suspended reports whether it gave no numbers.
func (f Frozen) Suspended() bool { return f.suspended }

// Now returns the newest time of a call.
func (f Frozen) Now() int64 { return f.now }

// VoidedUntil returns when the policy last stopped to void open numbers whose time had ended; 0 is
// never. Those that ended until then are voided, although they are stored as open.
func (f Frozen) VoidedUntil() int64 { return f.voidedUntil }

// Origin returns what the pieces say of themselves where they are merged. final is what Final
// returns.
func (f Frozen) Origin(final bool) Origin {
	return f.rules().origin(func() bool { return final })
}

// rules is the series without its numbers.
func (f Frozen) rules() *Series {
	return &Series{definition: f.definition, version: f.version, since: f.since, now: f.now, voidedUntil: f.voidedUntil}
}

// Final reports whether a number is confirmed or voided. It may look at all of them.
func (f Frozen) Final() bool {
	for c := range f.scopes {
		if c.count[Confirmed]+c.count[Voided] > 0 {
			return true
		}
	}
	s := f.rules()
	for c := range f.scopes {
		for _, slab := range c.slabs {
			for i := range slab.records {
				if state, _ := s.stateOf(&slab.records[i], f.now); state == Confirmed || state == Voided {
					return true
				}
			}
		}
	}
	return false
}

// Pieces yields all numbers: the scopes in the order in which they began, each from its
// first on.
// A piece's numbers are valid until the next one.
func (f Frozen) Pieces(yield func(Piece) bool) {
	numbers := make([]Stored, 0, slabSize)
	for c := range f.scopes {
		p := Piece{Scope: c.values, Closed: c.closed, First: c.offset + 1}
		if c.offset > 0 {
			p.Begin = c.offset + 1
		}
		if len(c.slabs) == 0 && !yield(p) {
			return
		}
		for _, slab := range c.slabs {
			numbers = numbers[:0]
			for j := range slab.records {
				numbers = append(numbers, slab.records[j].stored())
			}
			if p.Numbers = numbers; !yield(p) {
				return
			}
			p.First += slabSize
		}
	}
}

// scopes yields all scopes.
func (f Frozen) scopes(yield func(*scope) bool) {
	for _, p := range f.pages {
		for _, c := range p.scopes {
			if !yield(c) {
				return
			}
		}
	}
}

// Lost yields the keys whose numbers were given to others, in their order.
func (f Frozen) Lost(yield func(Lost) bool) {
	f.lost.Scan(func(key string, l lostKey) bool { return yield(Lost{Key: key, Number: l.number, Released: l.released}) })
}

func (r *record) stored() Stored {
	return Stored{
		Key: r.key(), Label: r.label(), State: r.state, Shared: r.shared, Date: r.date,
		Taken: r.taken, Expires: r.expires, Reason: r.reason(),
	}
}
