package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// pings asks single members, and takes what their answers tell of the cluster: who leads,
// how far their disks are, members that this node does not know yet.
type pings struct {
	peers   Peers
	record  *nodeRecord
	roster  *roster
	witness *diskWitness
	states  *apply.States
	log     *slog.Logger
	// hint is the leader by the answers.
	hint *hint
}

// errOtherNode means that another node answered than the one that was pinged.
var errOtherNode = errors.New("another node answers at this member's address")

// ask pings a member. The member itself must answer: its address may belong to another
// node by now.
func (p *pings) ask(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
	own := p.states.Newest()
	reply, err := p.peers.Ping(ctx, m.GetTag(), m.GetGrpcAddress(), &peerv1.PingRequest{StateIndex: own.Index, StateHash: own.Hash})
	switch {
	case err != nil:
		return nil, err
	case string(reply.GetId()) != string(m.GetId()):
		return nil, errOtherNode
	case reply.GetCallerRemoved():
		p.record.removed()
	}
	p.witness.Told(nodeid.ID(m.GetId()).String(), reply.GetProcess(), reply.GetTerm(), reply.GetCommittedIndex(), time.Duration(reply.GetProcessAge()))
	p.hint.heard(time.Now(), reply.GetLeader())
	p.meet(ctx, m, reply.GetLeader())
	return reply, nil
}

// askVoter pings a voter by its raw Raft id.
func (p *pings) askVoter(ctx context.Context, id string) error {
	m, ok := p.roster.byID([]byte(id))
	if !ok {
		return errOtherNode
	}
	_, err := p.ask(ctx, m)
	return err
}

// appliedIndex returns a member's applied index.
func (p *pings) appliedIndex(ctx context.Context, m *raftlogv1.Member) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, quorum.PingTimeout)
	defer cancel()
	reply, err := p.ask(ctx, m)
	return reply.GetAppliedIndex(), err
}

// meet learns, through the member that named the leader, of an unknown one, and where one
// is that Raft here does not hear. The leader itself could not tell: it is refused as
// unknown, or both have moved and each has the other's old address.
func (p *pings) meet(ctx context.Context, through *raftlogv1.Member, leader []byte) {
	if len(leader) == 0 {
		return
	}
	_, known := p.roster.byID(leader)
	if known && !p.hint.ask(time.Now()) {
		return
	}
	reply, err := p.peers.Hello(ctx, through.GetTag(), through.GetGrpcAddress(), &peerv1.HelloRequest{Self: p.record.member()})
	if err != nil || !bytes.Equal(reply.GetSelf().GetId(), through.GetId()) || !bytes.Equal(reply.GetClusterId(), p.record.get().ClusterID) {
		return
	}
	for _, m := range reply.GetMembers() {
		if bytes.Equal(m.GetId(), leader) {
			p.hint.found(m)
		}
	}
	if known {
		return
	}
	p.log.Info("learned of new members", "through", through.GetTag())
	if err := p.roster.learn(reply.GetMembers()); err != nil {
		p.record.fail(fmt.Errorf("cluster: %w", err))
	}
}
