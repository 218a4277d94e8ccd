package leader

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
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// minReach is the least time that a voter has to answer a leader's check. With rarer
// heartbeats it is two heartbeat timeouts: a heartbeat is sent within half of one.
const minReach = 2 * time.Second

// VoterCheck tells, on the leader, whether enough voters answer it for a change of the
// members.
type VoterCheck struct{ cfg *Config }

// MayRemove refuses a removal, on the leader, after which fewer than a majority of the
// voters would answer it. It returns the index of the membership that it checked, which
// is not 0: the members are read after it, so they are no older.
func (c VoterCheck) MayRemove(ctx context.Context, tag string) (uint64, error) {
	_, judged := c.cfg.Registry.Membership()
	if judged == 0 { // A removal that names no membership has no check.
		return 0, outcome.NewNotApplied(outcome.Starting, errors.New("the state does not have the members yet"))
	}
	rest := votersWithout(c.cfg.Table.Refresh().Members, tag)
	if len(rest) == 0 {
		return judged, nil // The quorum does not change, or the state refuses.
	}
	if err := c.majorityAnswers(ctx, "without "+tag, rest); err != nil {
		return 0, err
	}
	return judged, nil
}

// mayVote refuses to give a member its vote, on the leader, as long as fewer than a majority of
// the voters, the member among them, answer. A new member that answers compensates for the
// larger majority; a member that fell silent after it caught up would cost the quorum.
func (c VoterCheck) mayVote(ctx context.Context, newcomer *raftlogv1.Member) error {
	var voters []*raftlogv1.Member
	for _, m := range c.cfg.Table.Refresh().Members {
		if !m.GetRemoved() && (m.GetVoter() || m.GetTag() == newcomer.GetTag()) {
			voters = append(voters, m)
		}
	}
	return c.majorityAnswers(ctx, "with "+newcomer.GetTag(), voters)
}

func (c VoterCheck) majorityAnswers(ctx context.Context, change string, voters []*raftlogv1.Member) error {
	silent, err := c.silent(ctx, voters)
	if err != nil || len(silent) == 0 {
		return err
	}
	return refusal(raftlogv1.RefusalReason_REFUSAL_REASON_LOSES_QUORUM, fmt.Sprintf(
		"%s, %d of the voters %s must answer, and these do not: %s",
		change, len(voters)/2+1, tagsOf(voters), tagsOf(silent)))
}

// votersWithout returns the voters that remain when the member with a tag is removed; nil if
// that member does not vote. They are the table's, which Raft's configuration follows.
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
func (c VoterCheck) silent(ctx context.Context, voters []*raftlogv1.Member) ([]*raftlogv1.Member, error) {
	since, term := c.cfg.Transport.SendSeq(), c.cfg.Raft.CurrentTerm()
	if c.cfg.Raft.State() != raft.Leader {
		return nil, outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	var names []raft.ServerID
	for _, m := range voters {
		names = append(names, member.ServerID(m.GetId()))
	}
	wait, cancel := context.WithTimeout(ctx, max(minReach, 2*c.cfg.Heartbeat))
	defer cancel()
	switch err := c.cfg.Transport.AwaitMajority(wait, since, term, names); {
	case err == nil:
		return nil, nil
	case errors.Is(err, transport.ErrNewerTerm), c.cfg.Raft.State() != raft.Leader:
		return nil, outcome.NewNotApplied(outcome.NotLeader, err)
	case ctx.Err() != nil:
		return nil, outcome.NewNotApplied(outcome.Deadline, err)
	}
	var silent []*raftlogv1.Member
	for i, m := range voters {
		if !c.cfg.Transport.Answered(since, term, names[i]) {
			silent = append(silent, m)
		}
	}
	return silent, nil
}

// refusal is the error of an operator's wish that cannot be granted.
func refusal(reason raftlogv1.RefusalReason, detail string) error {
	return &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: reason, Detail: detail, Field: "tag"}}
}
