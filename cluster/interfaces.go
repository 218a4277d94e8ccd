package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/leader"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/raftlog"
)

// StateMachine is the replicated state. The methods below may be called at any time.
type StateMachine interface {
	apply.State
	leader.StateMachine
}

// Snapshot is a frozen copy of the state.
type Snapshot = apply.Snapshot

// Registry is the table of members in the replicated state.
type Registry = leader.Registry

// Peers calls other nodes: members by their raw Raft ids, over Node.DialMember; by address nodes
// that need not be members, whose tag may be empty. Every call ends soon after its ctx. Calls for
// proposals return *outcome.Error. The error has a method Refused() *raftlogv1.Refusal, not nil if
// the replicated state refused; Denied() bool if the node does not let the caller in.
type Peers interface {
	peers.Caller
	leader.Caller
	Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
	// Awake reports that the member has just called this node, so that it can be reached.
	Awake(id []byte)
	ReadIndex(ctx context.Context, id []byte) (uint64, error)
	Forward(ctx context.Context, id []byte, group []byte) (raftlog.GroupResult, error)
}

// Self is how a node introduces itself on every call to a peer.
type Self struct {
	// ClusterID is empty as long as the node belongs to no cluster.
	ClusterID []byte
	ID        nodeid.ID
	// Tag is empty as long as the node has none.
	Tag string
}

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
	// NodeID is the Raft id that the store must belong to.
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
