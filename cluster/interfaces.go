package cluster

import (
	"context"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// StateMachine is the replicated state. The methods below may be called at any time.
type StateMachine interface {
	apply.State
	// AppliedIndex is the index of the newest entry the state has seen.
	AppliedIndex() uint64
	// WaitApplied waits until AppliedIndex is at least index, or ctx ends.
	WaitApplied(ctx context.Context, index uint64) error
}

// Snapshot is a frozen copy of the state.
type Snapshot = apply.Snapshot

// Registry is the table of members in the replicated state. It is safe for concurrent
// use.
type Registry interface {
	// ClusterID is the id of the cluster, 16 bytes; empty before it is formed.
	ClusterID() []byte
	// Members returns copies of all members, removed ones too, sorted by tag.
	Members() []*raftlogv1.Member
	// Membership returns the same, with the log index of the last change; 0 where the log
	// format has no such index.
	Membership() ([]*raftlogv1.Member, uint64)
	// Format is the log format that is written.
	Format() uint32
}

// Peers calls other nodes. tag names the node; it is empty where only an address is
// known. Every call ends soon after its ctx. Calls for proposals return *outcome.Error; a
// refusal by the replicated state is an error with a method Refused() *raftlogv1.Refusal;
// that the peer knows the caller as removed, one with Removed() bool; that it does not
// let the caller in, one with Denied() bool.
type Peers interface {
	Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error)
	Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
	Ping(ctx context.Context, tag, address string, req *peerv1.PingRequest) (*peerv1.PingResponse, error)
	// Awake tells that the node has just called this one, so that it can be reached.
	Awake(tag, address string)
	// Restarted tells which process of the node runs: connections to a former one are
	// closed.
	Restarted(tag string, process uint64)
	ReadIndex(ctx context.Context, tag, address string) (uint64, error)
	Forward(ctx context.Context, tag, address string, group []byte) (raftlog.GroupResult, error)
	Transfer(ctx context.Context, tag, address string, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error)
	// MayRemove asks the leader. An error of a program that does not know the call has
	// a method Unimplemented() bool.
	MayRemove(ctx context.Context, tag, address string, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error)
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
