package cluster

import (
	"context"

	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/readindex"
)

// Linearize waits until the local state is at least as new as the call. Errors
// are *outcome.Error with NotApplied.
func (n *Node) Linearize(ctx context.Context) error {
	e, err := n.callersEngine()
	if err != nil {
		return err
	}
	return e.path.explain(e.reads.Linearize(ctx))
}

// leaderReads is Raft as package readindex asks it on the leader.
type leaderReads struct{ *engine }

func (r leaderReads) CommitIndex() uint64 { return r.raft.CommitIndex() }

func (r leaderReads) Term() uint64 { return r.raft.CurrentTerm() }

// Verify asks a quorum whether this node still leads. The library sends the heartbeats
// for that, and fails at once if it does not lead; but it also counts answers to earlier
// heartbeats, which after a pause of this process may precede the election of another
// leader. So the answers are counted here.
func (r leaderReads) Verify(ctx context.Context) error {
	term, since := r.raft.CurrentTerm(), r.transport.SendSeq()
	if err := raftguard.Await(ctx, func() error { return r.raft.VerifyLeader().Error() }); err != nil {
		return err
	}
	return r.transport.AwaitMajority(ctx, since, term, r.configuration.VoterNames())
}

func (r leaderReads) Ready() (readindex.Ready, bool) { return r.leadership.Ready() }

func (n *Node) askReadIndex(ctx context.Context, leader string) (uint64, error) {
	m, err := n.table.Leader(leader)
	if err != nil {
		return 0, err
	}
	return n.cfg.Peers.ReadIndex(ctx, m.GetId())
}
