package cluster

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
)

// Storage is where a node keeps what must outlive its process. It belongs to one
// node for ever, and is used by one process of it at a time.
type Storage interface {
	// LoadRecord returns the node's record, and writes a new one with a random id
	// if nothing at all was ever stored. What is missing in part is an error.
	LoadRecord() (*member.Record, error)
	// SaveRecord replaces the record in one step, which is durable when it returns
	// nil. The record must not change any more.
	SaveRecord(record *member.Record) error
	// OpenStore opens log, votes and snapshots. It is called once, after
	// LoadRecord.
	OpenStore(options StoreOptions) (Store, error)
	// LoadWitness returns what SaveWitness was given, or what it was given some time
	// before, or nothing: it is written each second, and need not survive a crash of
	// the machine.
	LoadWitness() ([]byte, error)
	SaveWitness(data []byte) error
}

// StoreOptions is what a Storage needs to open a Store.
type StoreOptions struct {
	// NodeID is the Raft name of the node, which the store must belong to.
	NodeID string
	// MustExist is set for a node that is in a cluster: it has a store already.
	MustExist bool
	// StallLimit is how long one write may take. It is above zero.
	StallLimit time.Duration
	// Fatal must be called with the first error after which what is stored is not
	// known: damage, a failed write, a stalled one. It ends the node, returns at
	// once, and may be called from any goroutine, also before OpenStore returns.
	Fatal  func(error)
	Logger *slog.Logger
	// Wrote, if set, is told how long each write took, until it was durable. It
	// is quick.
	Wrote func(took time.Duration)
}

// Store is Raft's log, votes and snapshots. Whatever a method has written is
// durable when it returns nil; after an error for which StoreOptions.Fatal was
// called, nothing is given or taken any more.
type Store interface {
	raft.LogStore
	raft.StableStore
	Snapshots() raft.SnapshotStore
	// Close is called once, when Raft has ended.
	Close() error
}
