package etag

import (
	"fmt"
	"maps"
)

// State is the state that a Store keeps.
type State struct {
	// Clean means that the last write was a clean stop. The values are then the last
	// etags used; otherwise they are the ends of the reserved blocks.
	Clean bool
	// Start is the newest start number recorded, 0 if none ever was.
	Start uint64
	// Databases holds one value per database.
	//
	// Invariant: no etag above the value of its database was ever handed out.
	Databases map[string]uint64
}

func (s State) clone() State {
	s.Databases = maps.Clone(s.Databases)
	return s
}

func (s State) validate() error {
	for database, value := range s.Databases {
		if value > MaxEtag {
			return fmt.Errorf("%w: the counter of %q is %d, above 2^63-1", ErrCorrupt, database, value)
		}
	}
	return nil
}

type Reservation struct {
	// Start is a new start number, or 0 to leave it as it is.
	Start uint64
	// Limits holds the new ends of reserved blocks, by database. Other databases keep theirs.
	Limits map[string]uint64
}

// Store keeps State on disk. The counters call it from one goroutine at a time, and call
// only Close once a method has failed.
type Store interface {
	// Load returns the stored state; a new store has an empty one. Damage is an
	// error that wraps ErrCorrupt.
	Load() (State, error)
	// Reserve records r and erases the mark of a clean stop, in one atomic step
	// that is durable when it returns nil.
	Reserve(r Reservation) error
	// Stop records the mark of a clean stop and the last etags used, which are mostly lower
	// than the limits, in one atomic step that is durable when it returns nil.
	Stop(last map[string]uint64) error
	// Close releases the store without writing anything.
	Close() error
}
