package leader

import (
	"context"
	"errors"
	"fmt"
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
	result, err := m.tryRemove(ctx, tag, force, principal)
	for overtaken(err) && ctx.Err() == nil {
		result, err = m.tryRemove(ctx, tag, force, principal)
	}
	if err != nil {
		return 0, err
	}
	m.awaitGone(ctx, tag)
	return result.GetLogIndex(), nil
}

// tryRemove checks a removal, unless it is forced, and commits it. It is refused if the
// members changed in between.
func (m *Membership) tryRemove(ctx context.Context, tag string, force bool, principal *string) (*raftlogv1.Result, error) {
	var judged uint64
	if !force {
		var err error
		if judged, err = m.mayRemove(ctx, tag); err != nil {
			return nil, err
		}
	}
	if leader, ok := m.transfer.Leader(); ok && leader.GetTag() == tag && len(m.cfg.Configuration.Voters()) > 1 {
		if _, err := m.transfer.Request(ctx, ""); err != nil {
			m.cfg.Log.Warn("the leader is removed without a leadership transfer", "tag", tag, "error", err)
		}
	}
	return m.change(ctx, principal, &raftlogv1.MemberRemove{Tag: tag, MembershipIndex: judged})
}

// overtaken reports whether a removal was refused because the members changed since it
// was checked.
func overtaken(err error) bool {
	var refused *op.RefusedError
	return errors.As(err, &refused) && refused.Refusal.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY
}

func (m *Membership) awaitGone(ctx context.Context, tag string) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	for ctx.Err() == nil && m.cfg.Ctx.Err() == nil && m.cfg.Configuration.Has(tag) {
		pause.For(ctx, adminPause)
	}
}

// mayRemove asks the leader, which must reach them, whether enough voters would answer
// after a removal. It returns the index of the membership that was checked, 0 if there is
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
