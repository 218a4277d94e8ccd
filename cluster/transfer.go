package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// fullDiskTick is how often a leader compares its disk with those of the others. It
	// costs no message: the member pinger has the answers.
	fullDiskTick = 100 * time.Millisecond
	// transferTimeout bounds a leadership transfer: Raft gives up after its election
	// timeout, and the new leader must become known.
	transferTimeout = 5 * time.Second
)

// leaderTransfer transfers leadership to other voters, as in raft thesis 3.10.
type leaderTransfer struct {
	raft          *raft.Raft
	configuration configuration
	record        *nodeRecord
	roster        *roster
	peers         Peers
	gatherer      *commit.Gatherer
	pinger        *memberPinger
	check         voterCheck
	space         *space
	stuck         *stuckTransfer
	disk          *slowDisk
	transport     *transport.Transport
	// election is Raft's election timeout.
	election time.Duration
	// priority is this node's own.
	priority uint32
	log      *slog.Logger
	attempts transferAttempts
	// priorityTransfers and toldIn belong to the current leadership's work. toldIn is the
	// term in which a voter was last told to campaign because of this node's slow disk; 0
	// once the disk is not slow.
	priorityTransfers priorityTransfers
	toldIn            uint64
}

// request transfers leadership to the voter with this tag, wherever the leader is; see
// Node.Transfer.
func (t *leaderTransfer) request(ctx context.Context, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if _, err := t.gatherer.WaitLeader(ctx); err != nil {
		return "", err
	}
	leader, ok := t.leader()
	if !ok {
		return "", outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	if t.record.isSelf(leader) {
		return t.transferOwn(ctx, tag)
	}
	reply, err := t.peers.Transfer(ctx, leader.GetTag(), leader.GetGrpcAddress(), &peerv1.TransferRequest{Tag: tag})
	if err != nil {
		return "", err
	}
	m, _ := t.roster.byID(reply.GetLeader())
	return m.GetTag(), nil
}

// leader returns the leader that this node knows of.
func (t *leaderTransfer) leader() (*raftlogv1.Member, bool) {
	return t.roster.byServerID(t.gatherer.Leader())
}

// transferOwn transfers this node's own leadership.
func (t *leaderTransfer) transferOwn(ctx context.Context, tag string) (string, error) {
	if t.raft.State() != raft.Leader {
		return "", outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	to, err := t.targetWithTag(ctx, tag)
	if err != nil || to.ID == raft.ServerID(t.record.name()) {
		return tag, err
	}
	if err := t.run(ctx, to); err != nil {
		return "", outcome.NewNotApplied(outcome.NoQuorum, fmt.Errorf("transferring leadership: %w", err))
	}
	return t.awaitNewLeader(ctx)
}

// run transfers leadership to a server, or to the one that Raft chooses if target is empty.
// It is bounded by Raft's election timeout and ctx.
func (t *leaderTransfer) run(ctx context.Context, to raft.Server) error {
	err := readindex.Await(ctx, func() readindex.Future {
		if to.ID == "" {
			return t.raft.LeadershipTransfer()
		}
		return t.raft.LeadershipTransferToServer(to.ID, to.Address)
	})
	if ctx.Err() == nil {
		t.stuck.saw(err) // A transfer that has ended is not stuck, even if it failed.
	}
	return err
}

// targetWithTag returns the transfer target with this tag, or the default target if tag is
// empty.
func (t *leaderTransfer) targetWithTag(ctx context.Context, tag string) (raft.Server, error) {
	if tag == "" {
		return t.defaultTarget(), nil
	}
	m, ok := t.roster.byTag(tag)
	if !ok || m.GetRemoved() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "there is no member "+tag)
	}
	if why := t.unfit(m); why != "" {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, why)
	}
	for _, s := range t.configuration.servers() {
		if s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter {
			return s, t.checkAnswers(ctx, m)
		}
	}
	return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "member "+tag+" does not vote")
}

// unfit returns why a member is no transfer target: it is in no better condition to lead
// than this node. Empty means that it is one.
func (t *leaderTransfer) unfit(m *raftlogv1.Member) string {
	reply, ok := t.pinger.reply(m.GetId())
	switch {
	case ok && reply.GetStorageFull() && !t.space.below.Load():
		return "the disk of member " + m.GetTag() + " is nearly full"
	case ok && reply.GetStorageSlow() && !t.disk.slow(time.Now()):
		return "the disk of member " + m.GetTag() + " is slow"
	case ok && reply.GetLeaderPriority() == 0 && t.priority > 0:
		return "member " + m.GetTag() + " has leader-priority 0"
	}
	return ""
}

// checkAnswers refuses a target that does not answer.
func (t *leaderTransfer) checkAnswers(ctx context.Context, m *raftlogv1.Member) error {
	silent, err := t.check.silent(ctx, []*raftlogv1.Member{m})
	if err == nil && len(silent) > 0 {
		err = refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE, "member "+m.GetTag()+" does not answer the leader")
	}
	return err
}

// awaitNewLeader waits until this node knows another leader.
func (t *leaderTransfer) awaitNewLeader(ctx context.Context) (string, error) {
	for ctx.Err() == nil {
		if m, ok := t.leader(); ok && !t.record.isSelf(m) {
			return m.GetTag(), nil
		}
		sleep(ctx, adminPause)
	}
	return "", outcome.NewUnknown(outcome.NoQuorum, errors.New("leadership was transferred, but no new leader is known yet"))
}

// targets returns the possible transfer targets: the other voters that answered the last
// ping, but for those whose Raft ports were dialled in vain. One that has just ended answered
// the last ping, too.
func (t *leaderTransfer) targets() []transferTarget {
	var all []transferTarget
	for _, s := range t.configuration.servers() {
		m, known := t.roster.byServerID(string(s.ID))
		if !known || s.Suffrage != raft.Voter || t.record.isSelf(m) {
			continue
		}
		_, unreachable := t.transport.Unreachable(s.ID)
		if reply, behind, ok := t.pinger.replyAndLag(m.GetId()); ok && unreachable == nil {
			all = append(all, transferTarget{
				server: s, applied: reply.GetAppliedIndex(), behind: behind, priority: reply.GetLeaderPriority(),
				full: reply.GetStorageFull(), slow: reply.GetStorageSlow(), attempted: t.attempts.newestTo(s.ID),
			})
		}
	}
	return all
}

// defaultTarget returns the target of a transfer that names none. It is empty, so that Raft
// chooses the most up-to-date voter, unless the voters differ in disk or priority.
func (t *leaderTransfer) defaultTarget() raft.Server {
	best, found, differ := bestTarget(t.targets())
	if !differ {
		return raft.Server{}
	}
	if found {
		t.attempts.add(best.server.ID)
	}
	return best.server
}

// watchFullDisk transfers leadership while this node's disk is nearly full and another
// voter's is not: a leader without space refuses all calls.
func (t *leaderTransfer) watchFullDisk(ctx context.Context) {
	for ctx.Err() == nil {
		if t.space.below.Load() {
			t.transferFromFullDisk(ctx)
		}
		sleep(ctx, fullDiskTick)
	}
}

func (t *leaderTransfer) transferFromFullDisk(ctx context.Context) {
	best, found, _ := bestTarget(t.targets())
	if !found {
		return
	}
	t.attempts.add(best.server.ID)
	t.log.Warn("this leader's disk is nearly full: transferring leadership to a voter with space", "to", best.server.ID)
	if err := t.run(ctx, best.server); err != nil {
		t.log.Warn("leadership was not transferred", "error", err)
		sleep(ctx, memberPingEvery)
	}
}
