package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// removalTimeout bounds the check whether a member may be removed. It covers an
	// election, and the voters' time to answer.
	removalTimeout = 10 * time.Second
	// minReach is how long a voter has to answer a leader's check. With rarer heartbeats
	// it is two heartbeat timeouts: one is sent within half of one.
	minReach = 2 * time.Second
)

// mayRemove asks the leader, which must reach them, whether enough voters would answer
// after a removal. It returns the index of the membership that was checked, 0 if there is
// none. Errors are a refusal, or wrap an *outcome.Error and, after the timeout, why the
// last call failed.
func (n *Node) mayRemove(ctx context.Context, e *engine, tag string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	var last error
	for {
		if _, err := e.gatherer.WaitLeader(ctx); err != nil {
			if last != nil {
				err = fmt.Errorf("%w; before that: %w", err, last)
			}
			return 0, err
		}
		judged, err := n.askMayRemove(ctx, e, tag)
		if err == nil || op.RefusalOf(err) != nil {
			return judged, err
		}
		if ctx.Err() == nil { // One that was cut short tells nothing.
			last = err
		}
		sleep(ctx, adminPause) // The leader may be gone; WaitLeader decides when to give up.
	}
}

func (n *Node) askMayRemove(ctx context.Context, e *engine, tag string) (uint64, error) {
	leader, ok := e.leader()
	switch {
	case !ok:
		return 0, outcome.NewNotApplied(outcome.NoQuorum, nil)
	case e.isSelf(leader):
		return e.mayRemove(ctx, tag)
	}
	reply, err := n.cfg.Peers.MayRemove(ctx, leader.GetTag(), leader.GetGrpcAddress(), &peerv1.MayRemoveRequest{Tag: tag})
	var older interface{ Unimplemented() bool }
	if errors.As(err, &older) && older.Unimplemented() {
		return 0, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED,
			"the leader "+leader.GetTag()+" runs an older program, which cannot tell who would answer after the removal: hand leadership to a newer one, or force the removal")
	}
	return reply.GetMembershipIndex(), err
}

// mayRemove refuses a removal, on the leader, after which fewer than a majority of the
// voters would answer it. It returns the index of the membership that it checked: the
// members are read after it, so they are no older.
func (e *engine) mayRemove(ctx context.Context, tag string) (uint64, error) {
	_, judged := e.node.cfg.Registry.Membership()
	rest := votersWithout(e.node.roster.refresh().members, tag)
	if len(rest) == 0 {
		return judged, nil // The quorum does not change, or the state refuses.
	}
	if err := e.majorityAnswers(ctx, "without "+tag, rest); err != nil {
		return 0, err
	}
	return judged, nil
}

// mayVote refuses to give a member its vote, on the leader, as long as fewer than a
// majority of the voters, it among them, answer. A new member that answers makes up for
// the larger majority; one that fell silent after it caught up would cost the quorum.
func (e *engine) mayVote(ctx context.Context, newcomer *raftlogv1.Member) error {
	var voters []*raftlogv1.Member
	for _, m := range e.node.roster.refresh().members {
		if !m.GetRemoved() && (m.GetVoter() || m.GetTag() == newcomer.GetTag()) {
			voters = append(voters, m)
		}
	}
	return e.majorityAnswers(ctx, "with "+newcomer.GetTag(), voters)
}

// majorityAnswers refuses a change to the given voters if fewer than a majority of them
// answer the leader.
func (e *engine) majorityAnswers(ctx context.Context, change string, voters []*raftlogv1.Member) error {
	silent, err := e.silent(ctx, voters)
	if err != nil || len(silent) == 0 {
		return err
	}
	return refusal(raftlogv1.RefusalReason_REFUSAL_REASON_LOSES_QUORUM, fmt.Sprintf(
		"%s, %d of the voters %s must answer, and these do not: %s",
		change, len(voters)/2+1, tagsOf(voters), tagsOf(silent)))
}

// votersWithout returns the voters that remain when the member with a tag is removed; nil
// if that one does not vote. They are the table's, which Raft's configuration follows.
func votersWithout(members []*raftlogv1.Member, tag string) []*raftlogv1.Member {
	var rest []*raftlogv1.Member
	votes := false
	for _, m := range members {
		switch {
		case m.GetRemoved() || !m.GetVoter():
		case m.GetTag() == tag:
			votes = true
		default:
			rest = append(rest, m)
		}
	}
	if !votes {
		return nil
	}
	return rest
}

func tagsOf(members []*raftlogv1.Member) string {
	var tags []string
	for _, m := range members {
		tags = append(tags, m.GetTag())
	}
	return strings.Join(tags, ", ")
}

// silent returns the voters that do not answer this leader's Raft messages, if the others
// are no majority; else nil.
func (e *engine) silent(ctx context.Context, voters []*raftlogv1.Member) ([]*raftlogv1.Member, error) {
	since, term := e.transport.Mark(), e.raft.CurrentTerm()
	if e.raft.State() != raft.Leader {
		return nil, outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	var names []raft.ServerID
	for _, m := range voters {
		names = append(names, member.ServerID(m.GetId()))
	}
	wait, cancel := context.WithTimeout(ctx, max(minReach, 2*e.node.cfg.Timings.Heartbeat))
	defer cancel()
	switch err := e.transport.AwaitMajority(wait, since, term, names); {
	case err == nil:
		return nil, nil
	case errors.Is(err, transport.ErrNewerTerm), e.raft.State() != raft.Leader:
		return nil, outcome.NewNotApplied(outcome.NotLeader, err)
	case ctx.Err() != nil:
		return nil, outcome.NewNotApplied(outcome.Deadline, err)
	}
	var silent []*raftlogv1.Member
	for i, m := range voters {
		if !e.transport.Answered(since, term, names[i]) {
			silent = append(silent, m)
		}
	}
	return silent, nil
}
