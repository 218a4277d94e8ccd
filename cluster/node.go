package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Node is one member of a cluster, or on its way to become a member. Its methods are safe for
// concurrent use; before Start has brought Raft up, those that need it fail with
// NotApplied(Starting).
type Node struct {
	cfg       Config
	log       *slog.Logger
	record    *member.NodeRecord
	table     *peers.Table
	hosts     *peers.Hosts
	lifecycle *lifecycle
	space     *disk.Space
	disk      *disk.Writes
	store     *raftguard.BoundaryStore

	// noPlace is why there is no place in a cluster yet; nil once there is a place.
	noPlace      atomic.Pointer[error]
	quorum       *quorum.Reach
	clusterCheck *member.ClusterCheck

	up atomic.Pointer[engine]

	startOnce, stopOnce sync.Once
	// starting is held by Start, so that Shutdown finds all or nothing started.
	starting sync.Mutex
}

// Open opens the storage and locks it. It calls no other node and opens no port, but the
// node answers Hello from here on, so that a server for the calls between nodes can use
// it. After an error nothing is left open.
func Open(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	record, err := cfg.Storage.LoadRecord()
	if err != nil {
		return nil, err
	}
	n := newNode(cfg, record)
	if record.Removed || record.Diverged != "" || record.SetBack != "" && !cfg.TrustData {
		return nil, n.record.Refuses()
	}
	// First, so that a record in the wrong directory is distinguished from a wrong flag:
	// its store is not its own.
	n.store, err = openStore(cfg.Storage, StoreOptions{
		NodeID: record.ID.String(), MustExist: record.InCluster(), StallLimit: cfg.StallLimit, SlowLimit: cfg.StallLimit / 6,
		Slowed: n.disk.TakeIn, Fatal: n.lifecycle.fail, Logger: cfg.Logger, Wrote: cfg.Events.Wrote,
	})
	if err != nil {
		return nil, err
	}
	if err := n.record.Refuses(); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return n, nil
}

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

func newNode(cfg Config, record *member.Record) *Node {
	n := &Node{cfg: cfg, log: cfg.Logger.With("id", record.ID.String()), lifecycle: newLifecycle(), quorum: quorum.NewReach()}
	n.record = member.NewNodeRecord(record, member.NodeRecordConfig{
		Tag: cfg.Tag, Advertise: cfg.Advertise, Watcher: cfg.Watcher, LogFormat: cfg.LogFormat, TrustData: cfg.TrustData,
		Save: cfg.Storage.SaveRecord, Fail: n.lifecycle.fail,
	})
	n.table = peers.NewTable(cfg.Registry.Members, n.record)
	n.hosts = peers.NewHosts(n.lifecycle.ctx, cfg.Network.DialContext, cfg.LookupHost, record.Hosts)
	n.space = disk.NewSpace(cfg.Room, cfg.MinFreeBytes, n.log)
	n.disk = disk.NewWrites(n.log)
	n.clusterCheck = member.NewClusterCheck(n.log)
	return n
}

// PeerSide returns what answers the calls of other nodes.
func (n *Node) PeerSide() *PeerSide { return &PeerSide{n} }

// engine returns the running engine, or an error that says why there is no engine.
func (n *Node) engine() (*engine, error) {
	if e := n.up.Load(); e != nil {
		return e, nil
	}
	select {
	case <-n.lifecycle.ctx.Done():
		return nil, outcome.NewNotApplied(outcome.Stopping, n.lifecycle.failure())
	default:
		return nil, outcome.NewNotApplied(outcome.Starting, nil)
	}
}

func onEngine[T any](n *Node, do func(*engine) (T, error)) (result T, err error) {
	e, err := n.engine()
	if err != nil {
		return result, err
	}
	return do(e)
}

// callersEngine returns the engine for callers' operations, or why they are not served.
func (n *Node) callersEngine() (*engine, error) {
	e, err := n.engine()
	if err != nil {
		return nil, err
	}
	if n.Removed() {
		return nil, outcome.NewNotApplied(outcome.Stopping, member.RemovedError(n.record.Get().Tag))
	}
	if err := n.clusterCheck.Err(); err != nil {
		return nil, outcome.NewNotApplied(outcome.Starting, err)
	}
	if err := e.path.refusal(); err != nil {
		return nil, err
	}
	return e, nil
}

// Propose commits one operation and returns the state machine's result. The operation
// must not be changed. Errors are *outcome.Error; ctx bounds the wait.
func (n *Node) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	e, err := n.callersEngine()
	if err != nil {
		return nil, err
	}
	result, err := e.gatherer.Propose(ctx, operation)
	return result, e.path.explain(err)
}

// ProposeAll commits several operations at the same time and returns, in their order, the
// outcome of each, as Propose does for one operation.
func (n *Node) ProposeAll(ctx context.Context, operations [][]byte) (results [][]byte, errs []error) {
	e, err := n.callersEngine()
	if err != nil {
		errs = make([]error, len(operations))
		for i := range errs {
			errs[i] = err
		}
		return make([][]byte, len(operations)), errs
	}
	results, errs = e.gatherer.ProposeAll(ctx, operations)
	for i, err := range errs {
		errs[i] = e.path.explain(err)
	}
	return results, errs
}

// RemoveMember removes the member with this tag for good and returns the log index of that. If
// it leads, it transfers leadership first. The change is in the log when RemoveMember returns; Raft's
// configuration follows within moments, or when there is a leader again. RemoveMember is
// refused if too few voters would answer without the member, unless force is set.
// principal is the caller's name; nil if there are no roles. Errors are *outcome.Error or
// carry the refusal in a method Refused.
func (n *Node) RemoveMember(ctx context.Context, tag string, force bool, principal *string) (uint64, error) {
	return onEngine(n, func(e *engine) (uint64, error) {
		index, err := e.leadership.Membership.Remove(ctx, tag, force, principal)
		return index, e.path.explain(err)
	})
}

// SetWatcher makes the member with this tag a watcher, which does not vote, or takes that back: then it gets its vote
// when it has caught up. The rest is as of RemoveMember; force matters where a vote is lost.
func (n *Node) SetWatcher(ctx context.Context, tag string, watcher, force bool, principal *string) (uint64, error) {
	return onEngine(n, func(e *engine) (uint64, error) {
		index, err := e.leadership.Membership.SetWatcher(ctx, tag, watcher, force, principal)
		return index, e.path.explain(err)
	})
}

// Transfer transfers leadership to the voter with this tag, or to Raft's choice if tag is
// empty, and returns the tag of the leader afterwards. Errors are *outcome.Error or
// *op.RefusedError.
func (n *Node) Transfer(ctx context.Context, tag string) (string, error) {
	return onEngine(n, func(e *engine) (string, error) {
		leader, err := e.leadership.Transfer.Request(ctx, tag)
		return leader, e.path.explain(err)
	})
}

// HasQuorum reports whether a quorum is in reach, as far as this node knows. It notices a
// loss within half a second.
func (n *Node) HasQuorum() bool { return n.quorum.Present() }

// QuorumMissing returns for how long no quorum has been in reach; 0 if a quorum is.
func (n *Node) QuorumMissing() time.Duration { return n.quorum.Missing() }

// QuorumChanges returns a channel that is closed at the next change of HasQuorum's
// result. Callers take it before they call HasQuorum, so that no change is missed.
func (n *Node) QuorumChanges() <-chan struct{} { return n.quorum.Changed() }

// DialContext connects to another node. If the name of its host cannot be looked up, it uses
// the IP addresses that the name had last.
func (n *Node) DialContext(ctx context.Context, address string) (net.Conn, error) {
	return n.hosts.DialContext(ctx, address)
}

// DialMember opens a connection for calls to the member with this raw Raft id: see
// transport.DialCalls.
func (n *Node) DialMember(ctx context.Context, id []byte) (net.Conn, error) {
	return onEngine(n, func(e *engine) (net.Conn, error) { return e.transport.DialCalls(ctx, member.ServerID(id)) })
}

// Done is closed when the node has ended, by itself or by Shutdown.
func (n *Node) Done() <-chan struct{} { return n.lifecycle.ctx.Done() }

// Err returns why the node ended by itself, or nil.
func (n *Node) Err() error { return n.lifecycle.failure() }

// Removed reports whether this node was removed, as far as it knows. It votes until it has
// left Raft's configuration, and then ends.
func (n *Node) Removed() bool { return n.table.SelfRemoved() }

func (n *Node) ID() nodeid.ID { return n.record.Get().ID }

// Tag returns the node's tag, and whether the cluster has confirmed it once.
func (n *Node) Tag() (tag string, confirmed bool) {
	r := n.record.Get()
	return r.Tag, r.TagConfirmed
}

// ClusterID returns the id of the node's cluster; empty before it has a cluster.
func (n *Node) ClusterID() []byte { return n.record.Get().ClusterID }

// Self returns how the node introduces itself to others now.
func (n *Node) Self() Self {
	r := n.record.Get()
	return Self{ClusterID: r.ClusterID, ID: r.ID, Tag: n.record.TagIn(r)}
}

// Members returns the members as this node knows them, removed ones too. It works from
// Open on. They must not be changed.
func (n *Node) Members() []*raftlogv1.Member { return n.table.Refresh().Members }
