package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// errOtherNode means that another node than the pinged one answered.
var errOtherNode = errors.New("another node answers at this member's address")

// Ask pings a member. The member itself must answer: its address may belong to another
// node by now.
func (p *Pinger) Ask(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
	own := p.cfg.States.Newest()
	reply, err := p.cfg.Peers.Ping(ctx, m.GetTag(), m.GetGrpcAddress(), &peerv1.PingRequest{StateIndex: own.Index, StateHash: own.Hash})
	switch {
	case err != nil:
		return nil, err
	case string(reply.GetId()) != string(m.GetId()):
		return nil, errOtherNode
	case reply.GetCallerRemoved():
		p.cfg.Record.EndRemoved()
	}
	p.cfg.Witness.Told(nodeid.ID(m.GetId()).String(), reply.GetProcess(), reply.GetTerm(), reply.GetCommittedIndex(),
		time.Duration(reply.GetProcessAge()))
	p.cfg.Hint.heard(time.Now(), reply.GetLeader())
	p.meet(ctx, m, reply.GetLeader())
	return reply, nil
}

// AskVoter pings a voter by its raw Raft id.
func (p *Pinger) AskVoter(ctx context.Context, id string) error {
	m, ok := p.cfg.Table.ByID([]byte(id))
	if !ok {
		return errOtherNode
	}
	_, err := p.Ask(ctx, m)
	return err
}

func (p *Pinger) AppliedIndex(ctx context.Context, m *raftlogv1.Member) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, quorum.PingTimeout)
	defer cancel()
	reply, err := p.Ask(ctx, m)
	return reply.GetAppliedIndex(), err
}

// meet learns, through the member that named the leader, of an unknown leader, or of the
// addresses of a leader that Raft here does not hear. The leader itself could not introduce
// itself: it is refused as unknown, or both have moved and each has the other's old address.
func (p *Pinger) meet(ctx context.Context, through *raftlogv1.Member, leader []byte) {
	if len(leader) == 0 {
		return
	}
	_, known := p.cfg.Table.ByID(leader)
	if known && !p.cfg.Hint.ask(time.Now()) {
		return
	}
	reply, err := p.cfg.Peers.Hello(ctx, through.GetTag(), through.GetGrpcAddress(), &peerv1.HelloRequest{Self: p.cfg.Record.Member()})
	if err != nil || !bytes.Equal(reply.GetSelf().GetId(), through.GetId()) ||
		!bytes.Equal(reply.GetClusterId(), p.cfg.Record.Get().ClusterID) {
		return
	}
	for _, m := range reply.GetMembers() {
		if bytes.Equal(m.GetId(), leader) {
			p.cfg.Hint.found(m)
		}
	}
	if known {
		return
	}
	p.cfg.Log.Info("learned of new members", "through", through.GetTag())
	if err := p.cfg.Table.learn(reply.GetMembers()); err != nil {
		p.cfg.Record.Fail(fmt.Errorf("cluster: %w", err))
	}
}
