package cluster

import (
	"context"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// PeerSide answers the calls of other nodes. Whether a caller may make them is decided
// where the connection is accepted. It is safe for concurrent use, from Open on.
type PeerSide struct {
	cfg    Config
	record *member.NodeRecord
	table  *peers.Table
	space  *disk.Space
	disk   *disk.Writes
	engine func() (*engine, error)
}

// ClusterID returns the id of the node's cluster; empty before it has a cluster.
func (p *PeerSide) ClusterID() []byte { return p.record.Get().ClusterID }

// Member returns the member with this raw Raft id as this node knows it, removed
// ones too.
func (p *PeerSide) Member(id []byte) (*raftlogv1.Member, bool) { return p.table.ByID(id) }

// HandleHello returns who this node is.
func (p *PeerSide) HandleHello(_ context.Context, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return &peerv1.HelloResponse{
		Self: p.record.Member(), PeersHash: member.PeersHash(p.cfg.PeerList),
		ClusterId: p.ClusterID(), Members: p.table.Refresh().Members,
	}, nil
}

// HandleForward commits a group of another node, if this node leads.
func (p *PeerSide) HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	e, err := p.engine()
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	if received := p.cfg.Events.Received; received != nil {
		received()
	}
	return e.sender.submit(ctx, group)
}

// HandleReadIndex returns a read index, if this node leads.
func (p *PeerSide) HandleReadIndex(ctx context.Context) (uint64, error) {
	e, err := p.engine()
	if err != nil {
		return 0, err
	}
	return e.local.ReadIndex(ctx)
}

// HandlePing returns this node's condition, and takes the caller's state. caller is the
// caller's raw Raft id.
func (p *PeerSide) HandlePing(_ context.Context, caller []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	m, ok := p.table.ByID(caller)
	if ok {
		// This node's own pings decide whether a quorum is in reach, and the connection
		// to a node that was down until now may be waiting for its next attempt.
		p.cfg.Peers.Awake(m.GetTag(), m.GetGrpcAddress())
	}
	reply := p.condition()
	if e, err := p.engine(); err == nil {
		reply.CallerRemoved = ok && e.configuration.HasLeft(m)
		if ok && !m.GetRemoved() {
			e.pinger.WasPinged()
			e.pinger.TakeState(string(caller), apply.StateAt{Index: req.GetStateIndex(), Hash: req.GetStateHash()})
		}
		// Only a state after an applied entry is sent: see apply.States.
		state := e.machine.States().Newest()
		reply.StateIndex, reply.StateHash = state.Index, state.Hash
		reply.Term, reply.CommittedIndex = e.witness.Reached()
		reply.Process, reply.ProcessAge = e.transport.Process(), uint64(e.witness.Age())
		reply.LeaderContact = e.leaderLoss.Contact()
		if leader, ok := e.transfer.Leader(); ok {
			reply.Leader = leader.GetId()
		}
	}
	return reply, nil
}

// condition is this node's answer to a ping, as far as it is the same for all.
func (p *PeerSide) condition() *peerv1.PingResponse {
	reply := &peerv1.PingResponse{
		Id: p.record.ID(), AppliedIndex: p.cfg.StateMachine.AppliedIndex(),
		StorageFull: p.space.Below(), StorageSlow: p.disk.Slow(time.Now()), Version: p.cfg.Version,
		LeaderPriority: *p.cfg.LeaderPriority,
	}
	if p.cfg.CertificateEnds != nil {
		reply.CertificateEnds = p.cfg.CertificateEnds().Unix()
	}
	if p.cfg.Figures != nil {
		reply.Figures = p.cfg.Figures()
		reply.Figures.FreeBytes = p.space.FreeBytes()
	}
	return reply
}

// AddMember adds a node to the cluster, on behalf of principal unless that is nil. A repeated
// call with the same Raft id gives the same answer.
func (p *PeerSide) AddMember(ctx context.Context, add *raftlogv1.MemberAdd, principal *string) (*peerv1.JoinResponse, error) {
	e, err := p.engine()
	if err != nil {
		return nil, err
	}
	return e.membership.Add(ctx, add, principal)
}

// HandleMayRemove reports whether a member may be removed, if this node leads.
func (p *PeerSide) HandleMayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	e, err := p.engine()
	if err != nil {
		return nil, err
	}
	judged, err := e.check.MayRemove(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	return &peerv1.MayRemoveResponse{MembershipIndex: judged}, nil
}

// HandleTransfer hands this node's leadership over.
func (p *PeerSide) HandleTransfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	e, err := p.engine()
	if err != nil {
		return nil, err
	}
	tag, err := e.transfer.TransferOwn(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	m, _ := p.table.ByTag(tag)
	return &peerv1.TransferResponse{Leader: m.GetId()}, nil
}
