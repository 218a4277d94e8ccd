package cluster

import (
	"context"
	"fmt"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// sender sends groups to a leader: to this node's own Batcher, or to a peer.
type sender struct{ e *engine }

var _ commit.Sender = sender{}

// Send implements commit.Sender. One hop: a peer that does not lead refuses.
func (s sender) Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error) {
	if leader == s.e.name {
		return s.e.submit(ctx, group)
	}
	m, ok := s.e.node.roster.byServerID(leader)
	if !ok {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.NotLeader, fmt.Errorf("the leader %s is no member that this node knows", leader))
	}
	if forwarded := s.e.node.cfg.Events.Forwarded; forwarded != nil {
		forwarded()
	}
	return s.e.node.cfg.Peers.Forward(ctx, m.GetTag(), m.GetGrpcAddress(), group)
}

// submit hands a group to this node's own Batcher, unless the disk is nearly full: then
// it refuses before anything is written.
func (e *engine) submit(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	if e.node.space.full() {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.StorageFull, nil)
	}
	return e.batcher.Submit(ctx, group)
}
