package snowflake

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/snowflake"
)

// Stored is a pool without its leases, as a snapshot has it.
type Stored struct {
	Layout Layout
	// Window is the longest window, and Floor the first time that a window may have, in units.
	Window, Floor int64
	// Unknown is the longest window, in units, of leases that there may have been and that the pool does not
	// know; 0 if it knows all. The next acquisition sets the floor behind all of them.
	Unknown int64
}

// Frozen is a pool as it was. Its methods may run beside changes of the pool.
type Frozen struct {
	Stored
	leases btree.Map[int, Lease]
}

// Freeze returns the pool as it is. It copies nothing: the pool copies what it changes.
func (p *Pool) Freeze() Frozen {
	return Frozen{Stored: p.stored, leases: *p.leases.Copy()}
}

// Leases calls f with each lease by the worker's number, until f returns false.
func (f Frozen) Leases(each func(Lease) bool) {
	f.leases.Scan(func(_ int, l Lease) bool { return each(l) })
}

// Restore returns a pool of a snapshot, still without leases. The error is an *InvalidError.
func Restore(s Stored) (*Pool, error) {
	if err := s.Layout.CheckForm(); err != nil {
		return nil, err
	}
	longest := s.Layout.Units(MaxWindow)
	if s.Window < 1 || max(s.Window, s.Unknown) > longest || min(s.Floor, s.Unknown) < 0 {
		return nil, snowflake.Invalid("window", "of %d units, the floor %d, or the unknown window of %d, is out of range",
			s.Window, s.Floor, s.Unknown)
	}
	return newPool(s), nil
}

// Put adds the next lease of a snapshot: workers come by number, without a gap. The error is
// an *InvalidError.
func (p *Pool) Put(l Lease) error {
	if err := CheckHolder(l.Holder); err != nil {
		return err
	}
	if len(l.Principal) > MaxPrincipalBytes {
		return snowflake.Invalid("principal", "has %d bytes, must have at most %d", len(l.Principal), MaxPrincipalBytes)
	}
	if l.Worker != p.leases.Len() || l.Worker >= p.Layout().Workers() {
		return snowflake.Invalid("worker", "is %d, not the next one of %d", l.Worker, p.Layout().Workers())
	}
	if l.From < 0 || l.From > l.Until || l.Until > p.Layout().End() || l.From == l.Until && !l.Free {
		return snowflake.Invalid("window", "from %d until %d is none", l.From, l.Until)
	}
	p.put(l)
	return nil
}
