package cluster

import (
	"context"
	"fmt"

	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/internal/outcome"
)

// Linearize waits until the local state is at least as new as the call. Errors
// are *outcome.Error with NotApplied.
func (n *Node) Linearize(ctx context.Context) error {
	e, err := n.callersEngine()
	if err != nil {
		return err
	}
	return e.reads.Linearize(ctx)
}

// leaderReads is Raft as package readindex asks it on the leader.
type leaderReads struct{ e *engine }

var _ readindex.Raft = leaderReads{}

func (r leaderReads) CommitIndex() uint64 { return r.e.raft.CommitIndex() }

func (r leaderReads) Term() uint64 { return r.e.raft.CurrentTerm() }

// Verify asks a quorum whether this node still leads. The library sends the heartbeats
// for that, and fails at once if it does not lead; but it also counts answers to earlier
// heartbeats, which after a pause of this process may precede the election of another
// leader. So the answers are counted here.
func (r leaderReads) Verify(ctx context.Context) error {
	term, since := r.e.raft.CurrentTerm(), r.e.transport.Mark()
	if err := readindex.Await(ctx, func() readindex.Future { return r.e.raft.VerifyLeader() }); err != nil {
		return err
	}
	return r.e.transport.AwaitMajority(ctx, since, term, r.e.voterNames())
}

func (r leaderReads) Ready() (readindex.Ready, bool) {
	ready := r.e.ready.Load()
	if ready == nil {
		return readindex.Ready{}, false
	}
	return *ready, true
}

// remoteReads asks the leader for a read index.
type remoteReads struct{ e *engine }

var _ readindex.Remote = remoteReads{}

// ReadIndex implements readindex.Remote.
func (r remoteReads) ReadIndex(ctx context.Context, leader string) (uint64, error) {
	m, ok := r.e.node.roster.byServerID(leader)
	if !ok {
		return 0, outcome.NewNotApplied(outcome.NotLeader, fmt.Errorf("the leader %s is no member that this node knows", leader))
	}
	return r.e.node.cfg.Peers.ReadIndex(ctx, m.GetTag(), m.GetGrpcAddress())
}
