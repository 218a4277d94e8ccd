package cluster

import (
	"context"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/leader"
	"github.com/idnode/idnode/cluster/peers"
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

// Peers calls other nodes. tag names the node; it is empty if only an address is known.
// Every call ends soon after its ctx. Calls for proposals return *outcome.Error. The error has
// a method Refused() *raftlogv1.Refusal if the replicated state refused; Removed() bool if the
// peer knows the caller as removed; Denied() bool if the peer does not let the caller in.
type Peers interface {
	peers.Caller
	leader.Caller
	Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
	// Awake reports that the node has just called this node, so that it can be reached.
	Awake(tag, address string)
	// Restarted reports which process of the node runs: connections to its former process are
	// closed.
	Restarted(tag string, process uint64)
	ReadIndex(ctx context.Context, tag, address string) (uint64, error)
	Forward(ctx context.Context, tag, address string, group []byte) (raftlog.GroupResult, error)
}

// Self is how a node introduces itself on every call to a peer.
type Self struct {
	// ClusterID is empty as long as the node belongs to no cluster.
	ClusterID []byte
	// ID is the node's Raft id.
	ID nodeid.ID
	// Tag is empty as long as the node has none.
	Tag string
}
