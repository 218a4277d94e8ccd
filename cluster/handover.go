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
	// roomTick is how often a leader compares its disk with those of the others. It costs
	// no message: the member pinger has the answers.
	roomTick = 100 * time.Millisecond
	// transferTimeout bounds a handover: Raft gives up after its election
	// timeout, and the new leader must become known.
	transferTimeout = 5 * time.Second
)

// handover gives leadership to other nodes.
type handover struct {
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
	offers   offers
	// returns is used by one leadership at a time.
	returns returns
}

// request hands leadership to the voter with this tag, wherever the leader is; see
// Node.Transfer.
func (h *handover) request(ctx context.Context, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if _, err := h.gatherer.WaitLeader(ctx); err != nil {
		return "", err
	}
	leader, ok := h.leader()
	if !ok {
		return "", outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	if h.record.isSelf(leader) {
		return h.here(ctx, tag)
	}
	reply, err := h.peers.Transfer(ctx, leader.GetTag(), leader.GetGrpcAddress(), &peerv1.TransferRequest{Tag: tag})
	if err != nil {
		return "", err
	}
	m, _ := h.roster.byID(reply.GetLeader())
	return m.GetTag(), nil
}

// leader returns the leader that this node knows of.
func (h *handover) leader() (*raftlogv1.Member, bool) {
	return h.roster.byServerID(h.gatherer.Leader())
}

// here hands this node's own leadership over.
func (h *handover) here(ctx context.Context, tag string) (string, error) {
	if h.raft.State() != raft.Leader {
		return "", outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	to, err := h.successor(ctx, tag)
	if err != nil || to.ID == h.record.get().ID.ServerID() {
		return tag, err
	}
	if err := h.transfer(ctx, to); err != nil {
		return "", outcome.NewNotApplied(outcome.NoQuorum, fmt.Errorf("handing over leadership: %w", err))
	}
	return h.awaitSuccessor(ctx)
}

// transfer hands leadership over: to the given server, or to the one Raft chooses if to
// is empty. It is bounded by Raft's election timeout and ctx.
func (h *handover) transfer(ctx context.Context, to raft.Server) error {
	err := readindex.Await(ctx, func() readindex.Future {
		if to.ID == "" {
			return h.raft.LeadershipTransfer()
		}
		return h.raft.LeadershipTransferToServer(to.ID, to.Address)
	})
	if ctx.Err() == nil {
		h.stuck.saw(err) // A transfer that has ended is not stuck, even if it failed.
	}
	return err
}

// successor returns the server to hand over to; an empty one leaves the choice
// to Raft.
func (h *handover) successor(ctx context.Context, tag string) (raft.Server, error) {
	if tag == "" {
		return h.heir(), nil
	}
	m, ok := h.roster.byTag(tag)
	if !ok || m.GetRemoved() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "there is no member "+tag)
	}
	if why := h.unfit(m); why != "" {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, why)
	}
	for _, s := range h.configuration.servers() {
		if s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter {
			return s, h.mayLead(ctx, m)
		}
	}
	return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "member "+tag+" does not vote")
}

// unfit returns why a member is in no better condition to lead than this node, empty if
// it is.
func (h *handover) unfit(m *raftlogv1.Member) string {
	reply, ok := h.pinger.reply(m.GetId())
	switch {
	case ok && reply.GetStorageFull() && !h.space.below.Load():
		return "the disk of member " + m.GetTag() + " is nearly full"
	case ok && reply.GetStorageSlow() && !h.disk.slow(time.Now()):
		return "the disk of member " + m.GetTag() + " is slow"
	case ok && priorityOf(reply) == 0 && h.priority > 0:
		return "member " + m.GetTag() + " has leader-priority 0"
	}
	return ""
}

// mayLead refuses a transfer to a member that does not answer.
func (h *handover) mayLead(ctx context.Context, m *raftlogv1.Member) error {
	silent, err := h.check.silent(ctx, []*raftlogv1.Member{m})
	if err == nil && len(silent) > 0 {
		err = refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE, "member "+m.GetTag()+" does not answer the leader")
	}
	return err
}

// awaitSuccessor waits until another node is known to lead.
func (h *handover) awaitSuccessor(ctx context.Context) (string, error) {
	for ctx.Err() == nil {
		if m, ok := h.leader(); ok && !h.record.isSelf(m) {
			return m.GetTag(), nil
		}
		sleep(ctx, adminPause)
	}
	return "", outcome.NewUnknown(outcome.NoQuorum, errors.New("leadership was handed over, but no new leader is known yet"))
}

// candidates returns the other voters that answered the last ping.
func (h *handover) candidates() []candidate {
	var all []candidate
	for _, s := range h.configuration.servers() {
		m, known := h.roster.byServerID(string(s.ID))
		if !known || s.Suffrage != raft.Voter || h.record.isSelf(m) {
			continue
		}
		if reply, behind, ok := h.pinger.progressOf(m.GetId()); ok {
			all = append(all, candidate{
				server: s, applied: reply.GetAppliedIndex(), behind: behind, priority: priorityOf(reply),
				full: reply.GetStorageFull(), slow: reply.GetStorageSlow(), offered: h.offers.newestTo(s.ID),
			})
		}
	}
	return all
}

// priorityOf returns a member's priority by its answer to a ping.
func priorityOf(reply *peerv1.PingResponse) uint32 {
	if reply.LeaderPriority == nil {
		return DefaultLeaderPriority // An older program.
	}
	return reply.GetLeaderPriority()
}

// heir returns the server to hand over to: an empty one, which leaves the choice to
// Raft, unless some are not like the others.
func (h *handover) heir() raft.Server {
	best, found, differ := fittest(h.candidates())
	if !differ {
		return raft.Server{}
	}
	if found {
		h.offers.made(best.server.ID)
	}
	return best.server
}

// leaveToRoom hands leadership over while this node's disk is nearly full and another
// voter's is not: a leader without space refuses all calls.
func (h *handover) leaveToRoom(ctx context.Context) {
	for ctx.Err() == nil {
		if h.space.below.Load() {
			h.handToRoom(ctx)
		}
		sleep(ctx, roomTick)
	}
}

func (h *handover) handToRoom(ctx context.Context) {
	best, found, _ := fittest(h.candidates())
	if !found {
		return
	}
	h.offers.made(best.server.ID)
	h.log.Warn("this leader's disk is nearly full: leadership goes to a node with space", "to", best.server.ID)
	if err := h.transfer(ctx, best.server); err != nil {
		h.log.Warn("leadership was not handed over", "error", err)
		sleep(ctx, memberPingEvery)
	}
}
