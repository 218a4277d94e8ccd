package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/disklock"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// announcePause is the interval between two attempts to announce this node. An attempt
// itself waits for a leader.
const announcePause = 200 * time.Millisecond

// outageGrace is for how long a session that cannot be opened is no outage: elections take
// less.
const outageGrace = 5 * time.Second

// announcer commits announcements of this node. Each has the node's current addresses and
// formats, and opens a session.
type announcer struct {
	cfg     Config
	record  *member.NodeRecord
	log     *slog.Logger
	propose func(ctx context.Context, operation []byte) ([]byte, error)
	// unanswered reports that the leader answers no group: an announcement finds out when it does.
	unanswered func() bool
	// turn allows one announcement at a time.
	turn disklock.Mutex
	// turn guards the rest. fresh is a session that is not used yet, or 0. pending is an
	// announcement without an answer: it has a key, so that committing it twice does not
	// count as a start after a crash. Others may read outage.
	fresh   uint64
	pending []byte
	outage  atomic.Pointer[outage]
	// starts and process identify this start.
	starts, process uint64
}

// outage is a time in which the log does not take this node's announcements.
type outage struct {
	since time.Time
	// err is why; nil before the first attempt of a process.
	err error
	// start means that this start has not been announced yet, told that the log has the announcement.
	start, told bool
}

// newAnnouncer completes a, whose dependencies are set, before the announcement of this start.
func newAnnouncer(a *announcer) *announcer {
	a.turn = disklock.New()
	a.outage.Store(&outage{since: time.Now(), start: true})
	return a
}

// Open implements commit.SessionOpener. The announcement that every start makes
// serves the first caller.
func (a *announcer) Open(ctx context.Context) (session uint64, origin []byte, err error) {
	if err := a.turn.LockContext(ctx); err != nil {
		return 0, nil, err
	}
	defer a.turn.Unlock()
	if a.fresh == 0 {
		if err := a.announce(ctx); err != nil {
			return 0, nil, err
		}
	}
	session, a.fresh = a.fresh, 0
	return session, a.record.ID(), nil
}

// duty announces this node once after its start, even if no caller proposes anything: its
// addresses may have changed. It tries again after a session could not be opened: no caller
// may come as long as the node is not ready.
func (a *announcer) duty() duty.Duty {
	check := func(time.Time) duty.Task {
		if !a.isDue() {
			return nil
		}
		return a.endOutage
	}
	return duty.Duty{Name: "announcement", Every: announcePause, Check: check, Failed: "not announced yet", Level: slog.LevelDebug}
}

func (a *announcer) isDue() bool { return a.outage.Load() != nil || a.unanswered() }

// endOutage makes an announcement, unless Open has made it.
func (a *announcer) endOutage(ctx context.Context) error {
	if err := a.turn.LockContext(ctx); err != nil {
		return err
	}
	defer a.turn.Unlock()
	if !a.isDue() {
		return nil
	}
	return a.announce(ctx)
}

// announce commits an announcement. The caller has the turn.
func (a *announcer) announce(ctx context.Context) error {
	err := a.commit(ctx)
	switch before := a.outage.Load(); {
	case err == nil:
		if before != nil && before.told {
			a.log.Info("the log takes this node's announcements again")
		}
		a.outage.Store(nil)
	case errors.Is(ctx.Err(), context.Canceled): // The node stops.
	default:
		now := outage{since: time.Now(), err: err}
		if before != nil {
			now.since, now.start, now.told = before.since, before.start, before.told
		}
		if !now.told && time.Since(now.since) > outageGrace {
			now.told = true
			a.log.Warn("the log does not take this node's announcement: what needs the log is refused here", "error", err)
		}
		a.outage.Store(&now)
	}
	return err
}

func (a *announcer) served() error {
	switch o := a.outage.Load(); {
	case o == nil || !o.start && time.Since(o.since) <= outageGrace:
		return nil
	case o.err == nil:
		return errNotAnnounced
	default:
		return fmt.Errorf("%w: %w", errNotAnnounced, o.err)
	}
}

var errNotAnnounced = errors.New("the log has not taken this node's announcement")

// LogServed returns why the log does not serve this node, or nil: no leader answers it, or takes its
// announcements, so what needs the log is refused.
func (n *Node) LogServed() error {
	e, err := n.engine()
	if err != nil {
		return err
	}
	return cmp.Or(e.path.err(), e.announcer.served())
}

func (a *announcer) commit(ctx context.Context) error {
	if a.pending == nil {
		once := op.Envelope{Request: &op.RequestKey{Key: member.NewID()}}
		announcement, err := once.Encode(&raftlogv1.MemberAnnounce{Member: a.member()})
		if err != nil {
			return err
		}
		a.pending = announcement
	}
	answer, err := a.propose(ctx, a.pending)
	if err != nil {
		return err
	}
	result, err := op.DecodeResult(answer)
	if err != nil {
		a.pending = nil
		return a.refused(err)
	}
	// Until the node's own state has applied the announcement, it lacks settings of the
	// cluster, such as how many databases may have server-side ids, and what the cluster
	// knows of these. If that takes longer than this call, the next one repeats the same
	// announcement: another one would be another start, whose stop before was not clean.
	if err := a.cfg.StateMachine.WaitApplied(ctx, result.GetMember().GetSession()); err != nil {
		return err
	}
	a.pending = nil
	a.fresh = result.GetMember().GetSession()
	return a.accepted(result.GetMember())
}

// member is this node as it announces itself: with the number of its start.
func (a *announcer) member() *raftlogv1.Member {
	m := a.record.Member()
	m.Starts, m.Process, m.TrustData = a.starts, a.process, a.cfg.TrustData
	return m
}

func (a *announcer) accepted(r *raftlogv1.MemberResult) error {
	err := a.record.Update(func(record *member.Record) bool {
		changed := !record.TagConfirmed || record.Tag != r.GetMember().GetTag()
		record.TagConfirmed, record.Tag = true, r.GetMember().GetTag()
		return changed
	})
	if err != nil {
		a.record.Fail(err)
		return err
	}
	a.cfg.OnAnnounce(r)
	return nil
}

// refused ends the node if the cluster knows it as another, or writes what the node does
// not read. It returns the error in those words.
func (a *announcer) refused(err error) error {
	refusal := op.RefusalOf(err)
	switch refusal.GetReason() {
	case raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN:
		err = fmt.Errorf("cluster: %w: %s", member.ErrTagTaken, refusal.GetDetail())
		a.record.Fail(err)
	case raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED:
		err = fmt.Errorf("cluster: %w: %s", member.ErrTooOld, refusal.GetDetail())
		a.record.Fail(err)
	case raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK:
		err = a.record.EndSetBack(refusal.GetDetail())
	}
	return err
}
