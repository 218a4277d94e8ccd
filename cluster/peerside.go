package cluster

import (
	"context"
	"errors"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// The methods below answer the calls of other nodes. Whether a caller may make them is
// decided where the connection is accepted.

// HandleHello returns who this node is. It works from Open on.
func (n *Node) HandleHello(_ context.Context, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return &peerv1.HelloResponse{
		Self: n.member(), PeersHash: member.PeersHash(n.cfg.PeerList),
		ClusterId: n.ClusterID(), Members: n.roster.refresh().members,
	}, nil
}

// HandleForward commits a group of another node, if this node leads.
func (n *Node) HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	e, err := n.engine()
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	if received := n.cfg.Events.Received; received != nil {
		received()
	}
	return e.submit(ctx, group)
}

// HandleReadIndex returns a read index, if this node leads.
func (n *Node) HandleReadIndex(ctx context.Context) (uint64, error) {
	e, err := n.engine()
	if err != nil {
		return 0, err
	}
	return e.local.ReadIndex(ctx)
}

// HandlePing returns this node's condition, and takes the caller's state. caller is the
// caller's raw Raft id.
func (n *Node) HandlePing(_ context.Context, caller []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	m, ok := n.roster.byID(caller)
	if ok {
		// This node's own pings decide whether a quorum is in reach, and the connection
		// to a node that was down until now may be waiting for its next attempt.
		n.cfg.Peers.Awake(m.GetTag(), m.GetGrpcAddress())
	}
	reply := n.condition()
	reply.CallerRemoved = ok && m.GetRemoved()
	if e := n.up.Load(); e != nil {
		if ok && !m.GetRemoved() {
			e.pinger.told(string(caller), apply.StateAt{Index: req.GetStateIndex(), Hash: req.GetStateHash()})
		}
		// Only a state after an applied entry is sent: see apply.States.
		state := e.machine.States().Newest()
		reply.StateIndex, reply.StateHash = state.Index, state.Hash
		own := e.witness.Own()
		reply.Term, reply.CommittedIndex, reply.Process = own.Term, own.Committed, e.transport.Process()
		if leader, ok := e.leader(); ok {
			reply.Leader = leader.GetId()
		}
	}
	return reply, nil
}

// condition is this node's answer to a ping, as far as it is the same for all.
func (n *Node) condition() *peerv1.PingResponse {
	reply := &peerv1.PingResponse{
		Id: n.ID().Bytes(), AppliedIndex: n.cfg.StateMachine.AppliedIndex(),
		StorageFull: n.space.below.Load(), Version: n.cfg.Version,
	}
	if n.cfg.CertificateEnds != nil {
		reply.CertificateEnds = n.cfg.CertificateEnds().Unix()
	}
	if n.cfg.Stats != nil {
		f := n.cfg.Stats()
		reply.Figures = &peerv1.Figures{
			IdentitiesPerSecond: f.IdentitiesPerSecond, IdsPerSecond: f.IDsPerSecond,
			CommitP99Micros: uint64(f.CommitP99.Microseconds()), WriteP99Micros: uint64(f.WriteP99.Microseconds()),
			FreeBytes: n.space.left.Load(),
		}
	}
	return reply
}

// Admit adds a node to the cluster, on behalf of principal unless that is nil. A repeated
// call with the same Raft id gives the same answer.
func (n *Node) Admit(ctx context.Context, join *raftlogv1.MemberJoin, principal *string) (*peerv1.JoinResponse, error) {
	e, err := n.engine()
	if err != nil {
		return nil, err
	}
	result, err := e.change(ctx, principal, join)
	if err != nil {
		return nil, err
	}
	// The newcomer learns the members from this node's state, which must
	// therefore contain it.
	if err := n.cfg.StateMachine.WaitApplied(ctx, result.GetLogIndex()); err != nil {
		return nil, outcome.NewUnknown(outcome.Deadline, err)
	}
	return &peerv1.JoinResponse{
		ClusterId: n.ClusterID(), Member: result.GetMember().GetMember(), Members: n.roster.refresh().members,
	}, nil
}

// errNotWaiting means that an invited node does not wait for an invitation.
var errNotWaiting = errors.New("this node does not wait for an invitation: it was not started for that, or has a cluster already")

// HandleInvite lets a waiting node join and returns what it became.
func (n *Node) HandleInvite(ctx context.Context, req *peerv1.InviteRequest) (*peerv1.InviteResponse, error) {
	if !n.cfg.Standby || n.record.get().InCluster() {
		return nil, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, errNotWaiting.Error())
	}
	answer := make(chan member.InvitationAnswer, 1)
	invitation := member.Invitation{Address: req.GetAddress(), Tag: req.GetTag(), Watcher: req.GetWatcher(), Token: req.GetToken(), Answer: answer}
	select {
	case n.invitations <- invitation:
	case <-ctx.Done():
		return nil, outcome.NewNotApplied(outcome.Starting, errNotWaiting)
	case <-n.lifecycle.done:
		return nil, outcome.NewNotApplied(outcome.Stopping, nil)
	}
	select {
	case a := <-answer:
		return &peerv1.InviteResponse{Member: a.Member}, a.Err
	case <-ctx.Done():
		return nil, outcome.NewUnknown(outcome.Deadline, ctx.Err())
	}
}

// HandleMayRemove reports whether a member may be removed, if this node leads.
func (n *Node) HandleMayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	e, err := n.engine()
	if err != nil {
		return nil, err
	}
	judged, err := e.mayRemove(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	return &peerv1.MayRemoveResponse{MembershipIndex: judged}, nil
}

// HandleTransfer hands this node's leadership over.
func (n *Node) HandleTransfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	tag, err := n.transferHere(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	m, _ := n.roster.byTag(tag)
	return &peerv1.TransferResponse{Leader: m.GetId()}, nil
}
