package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// PeerSide answers the calls of other nodes. Whether a caller may make them is decided before. It is safe for concurrent use, from Open on.
type PeerSide struct{ node *Node }

// ClusterID returns the id of the node's cluster; empty before it has a cluster.
func (p *PeerSide) ClusterID() []byte { return p.node.ClusterID() }

// Member returns the member with this raw Raft id as this node knows it, removed
// ones too.
func (p *PeerSide) Member(id []byte) (*raftlogv1.Member, bool) { return p.node.table.ByID(id) }

// HandleHello returns who this node is.
func (p *PeerSide) HandleHello(_ context.Context, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return &peerv1.HelloResponse{
		Self: p.node.record.Member(), PeersHash: member.PeersHash(p.node.cfg.PeerList),
		ClusterId: p.ClusterID(), Members: p.node.table.Refresh().Members,
	}, nil
}

// Members returns the members as this node knows them.
func (p *PeerSide) Members() []*raftlogv1.Member { return p.node.Members() }

// HandleForward commits a group of another node, if this node leads.
func (p *PeerSide) HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	e, err := p.node.engine()
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	p.node.cfg.Events.Received()
	return e.sender.submit(ctx, group)
}

// HandleReadIndex returns a read index, if this node leads.
func (p *PeerSide) HandleReadIndex(ctx context.Context) (uint64, error) {
	return onEngine(p.node, func(e *engine) (uint64, error) { return e.local.ReadIndex(ctx) })
}

// HandlePing returns this node's condition, and takes the caller's state. caller is the
// caller's raw Raft id.
func (p *PeerSide) HandlePing(_ context.Context, caller []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	// This node's own pings decide whether a quorum is in reach, and the connection to a node
	// that was down until now may be waiting for its next attempt.
	p.node.cfg.Peers.Awake(caller)
	m, ok := p.node.table.ByID(caller)
	reply := p.node.condition()
	if e, err := p.node.engine(); err == nil {
		if ok && !m.GetRemoved() {
			e.pinger.TakeState(string(caller), apply.StateAt{Index: req.GetStateIndex(), Hash: req.GetStateHash()})
		}
		// Only a state after an applied entry is sent: see apply.States.
		state := e.machine.States().Newest()
		reply.StateIndex, reply.StateHash = state.Index, state.Hash
		reply.Term, reply.CommittedIndex = e.witness.Reached()
		reply.Process, reply.ProcessAge = e.transport.Process(), uint64(e.witness.Age())
		reply.LeaderContact = e.leaderLoss.Contact()
		if leader, ok := e.leadership.Transfer.Leader(); ok {
			reply.Leader = leader.GetId()
		}
		reply.OutOfReach = e.pinger.OutOfReach()
		if leader := e.path.silent(); leader != nil && !peers.Misses(reply, leader.GetId()) {
			reply.OutOfReach = append(reply.OutOfReach, leader.GetId())
		}
	}
	return reply, nil
}

// Prove calls a node that asks to join at its gRPC address. The error wraps an *outcome.Error, unless the node
// answers there and has, with TLS, the certificate of its tag: members would dial any address for ever.
func (p *PeerSide) Prove(ctx context.Context, newcomer *raftlogv1.Member) error {
	address := newcomer.GetGrpcAddress()
	reply, err := p.node.cfg.Peers.Hello(ctx, newcomer.GetTag(), address, &peerv1.HelloRequest{Self: p.node.record.Member()})
	if err == nil && !bytes.Equal(reply.GetSelf().GetId(), newcomer.GetId()) {
		err = errors.New("another node is there")
	}
	if err == nil {
		return nil
	}
	return outcome.NewNotApplied(outcome.Unspecified,
		fmt.Errorf("the node is not found at the gRPC address %s that it announces: %w", address, err))
}

// AddMember adds a node to the cluster, on behalf of principal unless that is nil. A repeated
// call with the same Raft id gives the same answer.
func (p *PeerSide) AddMember(ctx context.Context, add *raftlogv1.MemberAdd, principal *string) (*peerv1.JoinResponse, error) {
	return onEngine(p.node, func(e *engine) (*peerv1.JoinResponse, error) { return e.leadership.Membership.Add(ctx, add, principal) })
}

// HandleMayRemove reports whether a member may be removed, if this node leads.
func (p *PeerSide) HandleMayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	judged, err := onEngine(p.node, func(e *engine) (uint64, error) { return e.leadership.Check.MayRemove(ctx, req.GetTag()) })
	if err != nil {
		return nil, err
	}
	return &peerv1.MayRemoveResponse{MembershipIndex: judged}, nil
}

// HandleTransfer hands this node's leadership over.
func (p *PeerSide) HandleTransfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	tag, err := onEngine(p.node, func(e *engine) (string, error) { return e.leadership.Transfer.TransferOwn(ctx, req.GetTag()) })
	if err != nil {
		return nil, err
	}
	m, _ := p.node.table.ByTag(tag)
	return &peerv1.TransferResponse{Leader: m.GetId()}, nil
}

// condition is this node's answer to a ping, as far as it is the same for all.
func (n *Node) condition() *peerv1.PingResponse {
	reply := &peerv1.PingResponse{
		Id: n.record.ID(), AppliedIndex: n.cfg.StateMachine.AppliedIndex(),
		StorageFull: n.space.Below(), StorageSlow: n.disk.Slow(time.Now()), Version: n.cfg.Version,
		LeaderPriority: n.cfg.LeaderPriority,
	}
	if n.cfg.CertificateEnds != nil {
		reply.CertificateEnds = n.cfg.CertificateEnds().Unix()
	}
	if n.cfg.Figures != nil {
		reply.Figures = n.cfg.Figures()
		reply.Figures.FreeBytes = n.space.Room().Bytes
	}
	return reply
}
