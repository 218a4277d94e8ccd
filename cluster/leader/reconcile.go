package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// reconcileTick is how often the table and Raft's configuration are compared. It costs
	// no message while they are equal.
	reconcileTick = 100 * time.Millisecond
	// maxTransfers is how often a removed leader tries to transfer leadership before it
	// removes itself, which ends its leadership more slowly.
	maxTransfers = 5
	// changeTimeout bounds a change of Raft's configuration.
	changeTimeout = 5 * time.Second
)

// raftServers is what the loop needs of Raft on the leader. The calls that change
// something are bounded in time.
type raftServers interface {
	Configuration() ([]raft.Server, error)
	AddVoter(id raft.ServerID) error
	AddNonvoter(id raft.ServerID) error
	DemoteVoter(id raft.ServerID) error
	RemoveServer(id raft.ServerID) error
	ToAny(ctx context.Context) error
}

// reconciler makes Raft's configuration equal to the replicated table of members, on the
// leader. The table is the desired state, and only the log changes it; so the next leader
// finishes a change that a leader did not finish.
//
// Invariant: one change at a time, and a server gets a vote only after it has caught up,
// and while a majority with it answers: a voter that is far behind, or does not exist,
// can cost the quorum.
//
// A change cannot be made conditional on the configuration that it was derived from: the
// library does not return that configuration's index. If another leader changed it in between,
// the table wanted this change shortly before; Raft makes it only as the leader and after the
// previous change is committed, and the next round corrects it.
type reconciler struct {
	Self nodeid.ID
	Raft raftServers
	// Members returns the table, removed members too.
	Members func() []*raftlogv1.Member
	// AppliedIndex asks a member how far its state is.
	AppliedIndex func(ctx context.Context, m *raftlogv1.Member) (applied uint64, err error)
	// Match returns the index up to which this leader knows a server's log to be its own, by an
	// answer of the last seconds; 0 without an answer. A state may be near the commit index
	// although nothing is replicated to it, as after a snapshot whose answer was lost: the
	// entry with its vote would not reach the server.
	Match func(id raft.ServerID) uint64
	// Commit returns the commit index here.
	Commit func() uint64
	// MayVote fails as long as a member's vote would cost the quorum.
	MayVote func(ctx context.Context, m *raftlogv1.Member) error
	// Promote commits that a member may vote.
	Promote func(ctx context.Context, id []byte) error
	// Format is the current log format; RaiseFormat commits a newer format.
	Format      func() uint32
	RaiseFormat func(ctx context.Context, format uint32) error
	// Stable is how long a new member must keep up before it votes.
	Stable time.Duration
	Logger *slog.Logger

	caughtUp  map[raft.ServerID]time.Time
	transfers int
}

func (r *reconciler) duty() duty.Duty {
	r.caughtUp = map[raft.ServerID]time.Time{}
	return duty.Duty{
		Name: "configuration", Every: reconcileTick, Check: duty.Always(r.step), Late: true,
		Failed: "cannot make Raft's configuration equal to the members yet",
	}
}

// step makes at most one change of Raft's configuration. A failed change does not block the
// next change, for which the first may be waiting.
func (r *reconciler) step(ctx context.Context) error {
	servers, err := r.Raft.Configuration()
	if err != nil {
		return err
	}
	view := serversByID{}
	for _, s := range servers {
		view[s.ID] = s
	}
	members := r.Members()
	var problems []error
	for _, fix := range []func(context.Context, serversByID, *raftlogv1.Member) (bool, error){r.remove, r.add, r.demote, r.promote} {
		for _, m := range members {
			changed, err := fix(ctx, view, m)
			if changed {
				return nil
			}
			problems = append(problems, err)
		}
	}
	problems = append(problems, r.raiseFormat(ctx, members))
	return errors.Join(problems...)
}

// serversByID is Raft's at the beginning of the round.
type serversByID map[raft.ServerID]raft.Server

// remove takes removed members out of Raft's configuration. It goes first: a server that
// no longer exists costs the quorum.
func (r *reconciler) remove(ctx context.Context, c serversByID, m *raftlogv1.Member) (bool, error) {
	id := member.ServerID(m.GetId())
	if _, present := c[id]; !m.GetRemoved() || !present {
		return false, nil
	}
	if handed, err := r.handOver(ctx, id); handed || err != nil {
		return handed, err
	}
	r.Logger.Info("removing a server from raft", "tag", m.GetTag(), "id", id)
	if err := r.Raft.RemoveServer(id); err != nil {
		return false, fmt.Errorf("removing %s: %w", m.GetTag(), err)
	}
	return true, nil
}

// handOver transfers leadership if this node loses its own vote, so often and no more.
func (r *reconciler) handOver(ctx context.Context, id raft.ServerID) (bool, error) {
	if id != raft.ServerID(r.Self.String()) || r.transfers >= maxTransfers {
		return false, nil
	}
	r.transfers++
	r.Logger.Info("this node is to vote no more: transferring leadership")
	if err := r.Raft.ToAny(ctx); err != nil {
		return false, fmt.Errorf("transferring leadership: %w", err)
	}
	return true, nil
}

// demote takes the vote of those that have become watchers.
func (r *reconciler) demote(ctx context.Context, c serversByID, m *raftlogv1.Member) (bool, error) {
	id := member.ServerID(m.GetId())
	if m.GetRemoved() || !m.GetWatcher() || c[id].Suffrage != raft.Voter || c[id].ID == "" {
		return false, nil
	}
	if handed, err := r.handOver(ctx, id); handed || err != nil {
		return handed, err
	}
	r.Logger.Info("a member becomes a watcher", "tag", m.GetTag(), "id", id)
	if err := r.Raft.DemoteVoter(id); err != nil {
		return false, fmt.Errorf("demoting %s: %w", m.GetTag(), err)
	}
	return true, nil
}

// add adds new members as servers without a vote. Raft's configuration has no addresses:
// each dial takes the address from the table.
func (r *reconciler) add(_ context.Context, c serversByID, m *raftlogv1.Member) (bool, error) {
	id := member.ServerID(m.GetId())
	if _, present := c[id]; m.GetRemoved() || present {
		return false, nil
	}
	r.Logger.Info("adding a server to raft", "tag", m.GetTag(), "id", id)
	if err := r.Raft.AddNonvoter(id); err != nil {
		return false, fmt.Errorf("adding %s: %w", m.GetTag(), err)
	}
	return true, nil
}

// promote gives members that have caught up their vote: first in the table, then in Raft.
// Who still votes in Raft, as its demotion was taken back, needs only the first.
func (r *reconciler) promote(ctx context.Context, c serversByID, m *raftlogv1.Member) (bool, error) {
	id := member.ServerID(m.GetId())
	server, present := c[id]
	votes := server.Suffrage == raft.Voter
	if m.GetRemoved() || m.GetWatcher() || !present || votes && m.GetVoter() {
		delete(r.caughtUp, id)
		return false, nil
	}
	if !votes {
		if ready, err := r.ready(ctx, id, m); !ready {
			return false, err
		}
	}
	if !m.GetVoter() {
		if err := r.Promote(ctx, m.GetId()); err != nil {
			return false, fmt.Errorf("promoting %s: %w", m.GetTag(), err)
		}
	}
	if votes {
		return true, nil
	}
	r.Logger.Info("a member has caught up and votes from now on", "tag", m.GetTag(), "id", id)
	if err := r.Raft.AddVoter(id); err != nil {
		return false, fmt.Errorf("giving %s its vote: %w", m.GetTag(), err)
	}
	return true, nil
}

// ready reports whether a member keeps up, and its vote does not cost the quorum. A leader that
// has taken its own vote, and leads until that is committed, leaves the question to the next one.
func (r *reconciler) ready(ctx context.Context, id raft.ServerID, m *raftlogv1.Member) (bool, error) {
	if id == raft.ServerID(r.Self.String()) {
		return false, nil
	}
	if ready, err := r.keepsUp(ctx, id, m); !ready {
		return false, err
	}
	if err := r.MayVote(ctx, m); err != nil {
		return false, fmt.Errorf("%s does not vote yet: %w", m.GetTag(), err)
	}
	return true, nil
}

// keepsUp reports whether the member's log and state have been near the commit index for the
// whole stable time. A member that does not answer starts over.
func (r *reconciler) keepsUp(ctx context.Context, id raft.ServerID, m *raftlogv1.Member) (bool, error) {
	commit := r.Commit()
	applied, err := r.AppliedIndex(ctx, m)
	if has := min(applied, r.Match(id)); err != nil || has+nearEnough < commit || has == 0 {
		delete(r.caughtUp, id)
		if err != nil {
			err = fmt.Errorf("asking %s how far it is: %w", m.GetTag(), err)
		}
		return false, err
	}
	now := time.Now()
	if _, known := r.caughtUp[id]; !known {
		r.caughtUp[id] = now
	}
	return now.Sub(r.caughtUp[id]) >= r.Stable, nil
}

func (r *reconciler) raiseFormat(ctx context.Context, members []*raftlogv1.Member) error {
	newest := uint32(0)
	for _, m := range members {
		if !m.GetRemoved() && (newest == 0 || m.GetLogFormat() < newest) {
			newest = m.GetLogFormat()
		}
	}
	if newest <= max(r.Format(), 1) {
		return nil
	}
	if err := r.RaiseFormat(ctx, newest); err != nil {
		return fmt.Errorf("raising the log format to %d: %w", newest, err)
	}
	r.Logger.Info("all members read a newer log format", "format", newest)
	return nil
}

type configurator struct{ *Transfer }

func (c configurator) Configuration() ([]raft.Server, error) {
	f := c.cfg.Raft.GetConfiguration()
	return f.Configuration().Servers, f.Error()
}

func (c configurator) AddVoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.cfg.Raft.AddVoter(id, transport.Address(id), 0, changeTimeout) })
}

func (c configurator) AddNonvoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.cfg.Raft.AddNonvoter(id, transport.Address(id), 0, changeTimeout) })
}

func (c configurator) DemoteVoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.cfg.Raft.DemoteVoter(id, 0, changeTimeout) })
}

func (c configurator) RemoveServer(id raft.ServerID) error {
	err := c.await(func() raft.IndexFuture { return c.cfg.Raft.RemoveServer(id, 0, changeTimeout) })
	if err == nil {
		// The removed node learns of it when it greets again.
		c.cfg.Transport.Disconnect(id)
	}
	return err
}

// askRaft requests a change of a configuration that does not exist. Raft refuses that
// without a write; during a transfer it refuses because of the transfer. A barrier cannot
// be used: reads rely on a leader's first barrier being its only one.
func (c configurator) askRaft() error {
	return c.await(func() raft.IndexFuture {
		return c.cfg.Raft.RemoveServer("", math.MaxUint64, raftguard.StuckTransferProbe)
	})
}

func (c configurator) await(start func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(c.cfg.Ctx, changeTimeout)
	defer cancel()
	return raftguard.Await(ctx, func() error { return start().Error() })
}
