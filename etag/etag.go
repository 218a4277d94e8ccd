// Package etag keeps this node's own counters: one per database, from which
// server-side ids take their numbers.
//
// A counter only rises, through restarts, crashes and power losses, and no value is handed
// out twice. It never waits for the cluster. To be fast it reserves values on disk in
// blocks: one durable write covers the next tens of thousands of etags, and the next block
// is reserved in the background before the current block ends. After a crash a counter
// continues above its reserved block, which leaves a gap; after a clean stop it continues
// exactly at its last value.
//
// The package owns the counters, the rule by which a start is checked against the cluster's
// record of this node (Reconcile), and the steps in which the cluster's ceilings rise
// (NextCeiling). It does not own the counters' file, which is behind Store, nor the calls to
// the cluster.
package etag

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"
)

const (
	// MaxEtag is the greatest etag; counters never wrap.
	MaxEtag uint64 = 1<<63 - 1
	// MaxBlock is the greatest number of etags of one call. It equals CeilingStep, so that a
	// single call cannot skip a whole step.
	MaxBlock = 1 << 20

	// DefaultBlockSize is the number of etags that one durable write reserves.
	DefaultBlockSize = 65_536
	// DefaultMaxWait bounds how long one call waits for the disk.
	DefaultMaxWait = 2 * time.Second
	// DefaultCloseWait bounds Close. It is longer than DefaultMaxWait because Close may have
	// to wait for a slow write before its own.
	DefaultCloseWait = 5 * time.Second

	// maxDatabaseBytes bounds a database name. A name that the store refuses would count as
	// a failed write and end all counters, so it is refused before.
	maxDatabaseBytes = 128
)

// Errors of the counters. No etag was handed out when one of them is returned.
var (
	ErrClosed = errors.New("etag: closed")
	// ErrBroken means that a durable write failed. It is permanent: the disk's content after
	// a failed fsync is unknown, and a second fsync may report success for data that the
	// first one lost, so no write may be retried.
	ErrBroken = errors.New("etag: a durable write failed")
	// ErrStalled means that the disk did not answer within MaxWait. The write may still
	// succeed; the call may be repeated.
	ErrStalled = errors.New("etag: the disk did not answer in time")
	// ErrExhausted means that the counter has too few etags left below 2^63.
	ErrExhausted = errors.New("etag: counter exhausted")
	// ErrTooManyDatabases means that a new database would exceed MaxDatabases.
	ErrTooManyDatabases = errors.New("etag: too many databases")
	// ErrCount means a block is smaller than 1 or larger than MaxBlock.
	ErrCount = errors.New("etag: block size out of range")
	// ErrDatabase means that a database name is empty or longer than 128 bytes.
	ErrDatabase = errors.New("etag: bad database name")
	// ErrCorrupt means the stored state is damaged. Stores wrap it.
	ErrCorrupt = errors.New("etag: stored state is damaged")
)

// StartingError is the reason why it is not yet known where the counters continue.
type StartingError string

func (e StartingError) Error() string { return string(e) }

// Config configures the counters. A zero value of the numbers means their default.
type Config struct {
	// BlockSize is the number of etags that one durable write reserves, at most 2^40. A crash
	// leaves a gap of at most two blocks in a database, plus the size of one request.
	BlockSize uint64
	// MaxDatabases returns the bound on databases with counters. It is called for each new
	// database and must be quick. It is the number up to which the cluster keeps ceilings,
	// because a counter without a ceiling must not be used.
	MaxDatabases func() int
	// MaxWait bounds how long Next, NextBlock and Started wait for the disk.
	MaxWait   time.Duration
	CloseWait time.Duration
	Logger    *slog.Logger
}

func (c Config) withDefaults() Config {
	c.BlockSize = cmp.Or(c.BlockSize, DefaultBlockSize)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultMaxWait)
	c.CloseWait = cmp.Or(c.CloseWait, DefaultCloseWait)
	return c
}

// Stored is what a Store keeps.
type Stored struct {
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

func (s Stored) clone() Stored {
	s.Databases = maps.Clone(s.Databases)
	return s
}

func (s Stored) validate() error {
	for database, value := range s.Databases {
		if value > MaxEtag {
			return fmt.Errorf("%w: the counter of %q is %d, above 2^63-1", ErrCorrupt, database, value)
		}
	}
	return nil
}

// Reservation is one durable step forward.
type Reservation struct {
	// Start is a new start number, or 0 to leave it as it is.
	Start uint64
	// Limits holds the new ends of reserved blocks, by database. Other databases keep theirs.
	Limits map[string]uint64
}

// Store keeps a Stored on disk. The counters call it from one goroutine at a time, and call
// only Close once a method has failed.
type Store interface {
	// Load returns the stored state; a new store has an empty one. Damage is an
	// error that wraps ErrCorrupt.
	Load() (Stored, error)
	// Reserve records r and erases the mark of a clean stop, in one atomic step
	// that is durable when it returns nil.
	Reserve(r Reservation) error
	// Stop records the mark of a clean stop and the last etags used, which are mostly lower
	// than the limits, in one atomic step that is durable when it returns nil.
	Stop(last map[string]uint64) error
	// Close releases the store without writing anything.
	Close() error
}
