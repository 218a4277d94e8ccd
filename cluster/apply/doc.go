// Package apply is between the Raft library and the state machine.
//
// It owns the application of entries, when and how snapshots are taken, and the hashes of the
// states and their comparison with those of other nodes.
package apply

import (
	"io"

	"github.com/idnode/idnode/raftlog"
)

// State is the replicated state. Its methods are called from one goroutine.
type State interface {
	// Apply runs the log entry at index and returns one result per group. An error means
	// that the entry can never be applied here: the node ends.
	Apply(index uint64, entry []byte) ([]raftlog.GroupResult, error)
	// Skip moves the applied index over an entry that is not for the state.
	Skip(index uint64)
	// Restore replaces the state by a snapshot.
	Restore(r io.Reader) error
	// Hash returns the index of the newest entry the state has seen, and the hash of the
	// state at it. States that applied the same log have equal hashes.
	Hash() (index, hash uint64)
}

// Snapshot is a frozen copy of the state. WriteTo may run beside Apply.
type Snapshot interface {
	io.WriterTo
	Close()
}
