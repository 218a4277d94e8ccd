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
	log           *slog.Logger
	offers        offers
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
	if reply, ok := h.pinger.reply(m.GetId()); ok && reply.GetStorageFull() && !h.space.below.Load() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "the disk of member "+tag+" is nearly full")
	}
	for _, s := range h.configuration.servers() {
		if s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter {
			return s, h.mayLead(ctx, m)
		}
	}
	return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "member "+tag+" does not vote")
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
		if reply, ok := h.pinger.reply(m.GetId()); ok {
			all = append(all, candidate{s, reply.GetAppliedIndex(), reply.GetStorageFull(), h.offers.newestTo(s.ID)})
		}
	}
	return all
}

// heir returns the server to hand over to: an empty one, which leaves the choice to
// Raft, unless that could be one whose disk is nearly full.
func (h *handover) heir() raft.Server {
	best, found, anyFull := roomiest(h.candidates(), h.raft.CommitIndex())
	if !anyFull {
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
	best, found, _ := roomiest(h.candidates(), h.raft.CommitIndex())
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
