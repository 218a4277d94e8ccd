package cluster

import (
	"context"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// sender sends groups to a leader: to this node's own Batcher, or to a peer.
type sender struct {
	*engine
	// name is this node's Raft name.
	name string
}

// Send implements commit.Sender. One hop: a peer that does not lead refuses.
func (s *sender) Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error) {
	if leader == s.name {
		return s.submit(ctx, group)
	}
	m, err := s.node.table.Leader(leader)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	s.node.cfg.Events.Forwarded()
	return s.node.cfg.Peers.Forward(ctx, m.GetId(), group)
}

// submit hands a group to this node's own Batcher, unless the disk is nearly full: then
// it refuses before anything is written.
func (s *sender) submit(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	if s.node.space.Full() {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.StorageFull, nil)
	}
	return s.batcher.Submit(ctx, group)
}
