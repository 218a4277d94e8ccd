package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/raftguard"
)

// Storage keeps a node's durable data. It belongs to one node permanently, and one
// process at a time uses it.
type Storage interface {
	// LoadRecord returns the node's record, and writes a new one with a random id if
	// nothing was ever stored. If only a part is missing, that is an error.
	LoadRecord() (*member.Record, error)
	// SaveRecord replaces the record in one step, which is durable when it returns nil.
	// The record must not be changed afterwards.
	SaveRecord(record *member.Record) error
	// OpenStore opens log, votes and snapshots. It is called once, after
	// LoadRecord.
	OpenStore(options StoreOptions) (Store, error)
	// LoadWitness returns what SaveWitness was given last, or some time before, or
	// nothing: it is written each second, and need not survive a crash of the machine.
	LoadWitness() ([]byte, error)
	SaveWitness(data []byte) error
}

// StoreOptions is what a Storage needs to open a Store.
type StoreOptions struct {
	// NodeID is the Raft name of the node, which the store must belong to.
	NodeID string
	// MustExist is set for a node that is in a cluster: it has a store already.
	MustExist bool
	// StallLimit bounds a write. It is above zero.
	StallLimit time.Duration
	// SlowLimit is how long a write for which Raft waits may be in flight before it is
	// slow. Slowed, if set, is called with true when a write is slow, and with false when
	// that write has ended. It is quick.
	SlowLimit time.Duration
	Slowed    func(slow bool)
	// Fatal must be called with the first error after which the stored data is uncertain:
	// damage, a failed write, a stalled write. It ends the node, returns at once, and may be
	// called from any goroutine, even before OpenStore returns.
	Fatal  func(error)
	Logger *slog.Logger
	// Wrote, if set, gets the time of each write until it was durable. It is quick.
	Wrote func(took time.Duration)
}

// Store is Raft's log, votes and snapshots.
type Store = raftguard.Store

// openStore opens the store, behind the guard of what a snapshot leaves of the log.
func openStore(s Storage, o StoreOptions) (*raftguard.BoundaryStore, error) {
	opened, err := s.OpenStore(o)
	if err != nil {
		return nil, fmt.Errorf("cluster: opening the store: %w", err)
	}
	bounded, err := raftguard.NewBoundaryStore(opened)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cluster: opening the store: %w", err), opened.Close())
	}
	return bounded, nil
}
