package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// announcePause is the interval between two attempts to announce this node. An attempt
// itself waits for a leader.
const announcePause = 200 * time.Millisecond

// announcer commits announcements of this node. Each has the node's current addresses and
// formats, and opens a session.
type announcer struct {
	cfg     Config
	record  *nodeRecord
	roster  *roster
	log     *slog.Logger
	propose func(ctx context.Context, operation []byte) ([]byte, error)
	// turn allows one announcement at a time.
	turn chan struct{}
	// turn guards the rest. fresh is a session that is not used yet, or 0. pending is an
	// announcement without an answer: it has a key, so that committing it twice does not
	// count as a start after a crash. started is set once this start has been announced.
	fresh   uint64
	pending []byte
	started bool
	// starts and process identify this start.
	starts, process uint64
}

var _ commit.SessionOpener = (*announcer)(nil)

// Open implements commit.SessionOpener. The announcement that every start makes
// serves the first caller.
func (a *announcer) Open(ctx context.Context) (session uint64, origin []byte, err error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	if a.fresh == 0 {
		if err := a.announce(ctx); err != nil {
			return 0, nil, err
		}
	}
	session, a.fresh = a.fresh, 0
	return session, a.record.id(), nil
}

// run announces this node once after its start, even if no caller proposes anything: its
// addresses may have changed.
func (a *announcer) run(ctx context.Context) {
	for !a.first(ctx) {
		select {
		case <-time.After(announcePause):
		case <-ctx.Done():
			return
		}
	}
}

// first makes the announcement of this start, unless Open has made one already.
func (a *announcer) first(ctx context.Context) bool {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return false
	}
	if a.started {
		return true
	}
	err := a.announce(ctx)
	if err != nil {
		a.log.Debug("not announced yet", "because", err)
	}
	return err == nil
}

// announce commits one announcement. The caller has the turn.
func (a *announcer) announce(ctx context.Context) error {
	if a.pending == nil {
		key := member.NewID()
		announcement, err := op.Envelope{}.Encode(&raftlogv1.MemberAnnounce{Member: a.member()})
		if err != nil {
			return err
		}
		a.pending = op.AppendRequest(announcement, op.RequestKey{Key: key})
	}
	answer, err := a.propose(ctx, a.pending)
	if err != nil {
		return err
	}
	a.pending = nil
	result, err := op.DecodeResult(answer)
	if err != nil {
		return a.refused(err)
	}
	// Until the node's own state has applied the announcement, it lacks settings of the
	// cluster, such as how many databases may have server-side ids.
	if err := a.cfg.StateMachine.WaitApplied(ctx, result.GetMember().GetSession()); err != nil {
		return err
	}
	a.fresh = result.GetMember().GetSession()
	return a.accepted(result.GetMember())
}

// member is this node as it announces itself: with the number of its start.
func (a *announcer) member() *raftlogv1.Member {
	m := a.record.member()
	m.Starts, m.Process, m.TrustData = a.starts, a.process, a.cfg.TrustData
	return m
}

// accepted records what the cluster says about this node.
func (a *announcer) accepted(r *raftlogv1.MemberResult) error {
	err := a.record.update(func(record *member.Record) bool {
		changed := !record.TagConfirmed || record.Tag != r.GetMember().GetTag()
		record.TagConfirmed, record.Tag = true, r.GetMember().GetTag()
		return changed
	})
	if err != nil {
		a.record.fail(err)
		return err
	}
	a.started = true
	if a.cfg.OnAnnounce != nil {
		a.cfg.OnAnnounce(r)
	}
	return nil
}

// refused ends the node if the cluster does not know it, knows it as another, or
// writes what the node does not read. It returns the error in those words.
func (a *announcer) refused(err error) error {
	refusal := op.RefusalOf(err)
	switch refusal.GetReason() {
	case raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN:
		err = fmt.Errorf("cluster: %w: %s", member.ErrTagTaken, refusal.GetDetail())
		a.record.fail(err)
	case raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED:
		err = fmt.Errorf("cluster: %w: %s", member.ErrTooOld, refusal.GetDetail())
		a.record.fail(err)
	case raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK:
		err = a.record.setBack(refusal.GetDetail())
	case raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER:
		if m, ok := a.roster.byID(a.record.id()); ok && m.GetRemoved() {
			a.record.removed()
			err = errors.Join(member.ErrRemoved, err)
		}
	}
	return err
}
