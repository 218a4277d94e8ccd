package leader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// removalTimeout bounds the check whether a member may be removed. It covers an
	// election, and the voters' time to answer.
	removalTimeout = 10 * time.Second
	// adminPause is the interval between two checks of whether a change has taken effect.
	adminPause = 20 * time.Millisecond
)

// Membership changes the replicated table of members.
type Membership struct {
	cfg      *Config
	transfer *Transfer
}

// change commits an operation on the members, in the name of principal unless that is
// nil, and returns its result. The error is an *op.RefusedError or wraps an *outcome.Error.
func (m *Membership) change(ctx context.Context, principal *string, payload proto.Message) (*raftlogv1.Result, error) {
	operation, err := op.Envelope{Principal: principal}.Encode(payload)
	if err != nil {
		return nil, err
	}
	answer, err := m.cfg.Gatherer.ProposeIdempotent(ctx, operation)
	if err != nil {
		return nil, err
	}
	return op.DecodeResult(answer)
}

// Add adds a node to the cluster; see PeerSide.AddMember.
func (m *Membership) Add(ctx context.Context, add *raftlogv1.MemberAdd, principal *string) (*peerv1.JoinResponse, error) {
	result, err := m.change(ctx, principal, add)
	if err != nil {
		return nil, err
	}
	// The newcomer learns the members from this node's state, which must
	// therefore contain it.
	if err := m.cfg.State.WaitApplied(ctx, result.GetLogIndex()); err != nil {
		return nil, outcome.NewUnknown(outcome.Deadline, err)
	}
	return &peerv1.JoinResponse{
		ClusterId: m.cfg.Record.Get().ClusterID, Member: result.GetMember().GetMember(), Members: m.cfg.Table.Refresh().Members,
	}, nil
}

func (m *Membership) promote(ctx context.Context, id []byte) error {
	_, err := m.change(ctx, nil, &raftlogv1.MemberPromote{Id: id})
	return err
}

func (m *Membership) raiseFormat(ctx context.Context, format uint32) error {
	_, err := m.change(ctx, nil, &raftlogv1.FormatRaise{Format: format})
	return err
}

// Remove removes a member and returns the log index of that; see Node.RemoveMember.
func (m *Membership) Remove(ctx context.Context, tag string, force bool, principal *string) (uint64, error) {
	return m.lose(ctx, tag, force, principal, func() bool { return !m.cfg.Configuration.Has(tag) },
		func(judged uint64) proto.Message { return &raftlogv1.MemberRemove{Tag: tag, MembershipIndex: judged} })
}

// SetWatcher makes a member a watcher, or takes that back, and returns the log index of that; see Node.SetWatcher.
func (m *Membership) SetWatcher(ctx context.Context, tag string, watcher, force bool, principal *string) (uint64, error) {
	if !watcher {
		result, err := m.change(ctx, principal, &raftlogv1.WatcherSet{Tag: tag})
		return result.GetLogIndex(), err
	}
	votes := func(v *raftlogv1.Member) bool { return v.GetTag() == tag }
	return m.lose(ctx, tag, force, principal, func() bool { return !slices.ContainsFunc(m.cfg.Configuration.VotingMembers(), votes) },
		func(judged uint64) proto.Message {
			return &raftlogv1.WatcherSet{Tag: tag, Watcher: true, MembershipIndex: judged}
		})
}

// lose commits what takes a member's vote, waits until it has no more, and returns the log index.
func (m *Membership) lose(
	ctx context.Context, tag string, force bool, principal *string, gone func() bool, payload func(judged uint64) proto.Message,
) (uint64, error) {
	result, err := m.tryLose(ctx, tag, force, principal, payload)
	for overtaken(err) && ctx.Err() == nil {
		result, err = m.tryLose(ctx, tag, force, principal, payload)
	}
	if err != nil {
		return 0, err
	}
	m.await(ctx, gone)
	return result.GetLogIndex(), nil
}

// tryLose checks the loss of a vote, unless it is forced, and commits it. It is refused if the
// members changed in between.
func (m *Membership) tryLose(
	ctx context.Context, tag string, force bool, principal *string, payload func(judged uint64) proto.Message,
) (*raftlogv1.Result, error) {
	var judged uint64
	if !force {
		var err error
		if judged, err = m.mayRemove(ctx, tag); err != nil {
			return nil, err
		}
	}
	if leader, ok := m.transfer.Leader(); ok && leader.GetTag() == tag && len(m.cfg.Configuration.Voters()) > 1 {
		if _, err := m.transfer.Request(ctx, ""); err != nil {
			m.cfg.Log.Warn("the leader loses its vote without a leadership transfer", "tag", tag, "error", err)
		}
	}
	return m.change(ctx, principal, payload(judged))
}

// overtaken reports whether a change was refused because the members changed since it
// was checked.
func overtaken(err error) bool {
	var refused *op.RefusedError
	return errors.As(err, &refused) && refused.Refusal.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY
}

// await waits until Raft's configuration has followed.
func (m *Membership) await(ctx context.Context, followed func() bool) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	for ctx.Err() == nil && m.cfg.Ctx.Err() == nil && !followed() {
		pause.For(ctx, adminPause)
	}
}

// mayRemove asks the leader, which must reach them, whether enough voters would answer
// after the loss of a vote. It returns the index of the membership that was checked, 0 if there is
// none. Errors are a refusal, or wrap an *outcome.Error and, after the timeout, why the
// last call failed.
func (m *Membership) mayRemove(ctx context.Context, tag string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	var last error
	for {
		if _, err := m.cfg.Gatherer.WaitLeader(ctx); err != nil {
			if last != nil {
				err = fmt.Errorf("%w; before that: %w", err, last)
			}
			return 0, err
		}
		judged, err := m.askMayRemove(ctx, tag)
		if err == nil || op.RefusalOf(err) != nil {
			return judged, err
		}
		if ctx.Err() == nil { // The error of a call that was cut short says nothing.
			last = err
		}
		pause.For(ctx, adminPause) // The leader may be gone; WaitLeader decides when to give up.
	}
}

func (m *Membership) askMayRemove(ctx context.Context, tag string) (uint64, error) {
	leader, ok := m.transfer.Leader()
	switch {
	case !ok:
		return 0, outcome.NewNotApplied(outcome.NoQuorum, nil)
	case m.cfg.Record.IsSelf(leader):
		return VoterCheck{m.cfg}.MayRemove(ctx, tag)
	}
	reply, err := m.cfg.Peers.MayRemove(ctx, leader.GetId(), &peerv1.MayRemoveRequest{Tag: tag})
	return reply.GetMembershipIndex(), err
}
