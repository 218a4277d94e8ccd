package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// inviteTimeout bounds the join of an invited node.
	inviteTimeout = 15 * time.Second
	// transferTimeout bounds a handover: Raft gives up after its election
	// timeout, and the new leader must become known.
	transferTimeout = 5 * time.Second
	// changeTimeout bounds a change of Raft's configuration.
	changeTimeout = 5 * time.Second
	// adminPause is the interval between two checks of whether a change has taken effect.
	adminPause = 20 * time.Millisecond
)

// change commits an operation on the members, in the name of principal unless that is
// nil, and returns its result. A refusal is an *op.RefusedError.
func (e *engine) change(ctx context.Context, principal *string, payload proto.Message) (*raftlogv1.Result, error) {
	operation, err := op.Envelope{Principal: principal}.Encode(payload)
	if err != nil {
		return nil, outcome.NewNotApplied(outcome.Invalid, err)
	}
	answer, err := e.gatherer.ProposeIdempotent(ctx, operation)
	if err != nil {
		return nil, err
	}
	return op.DecodeResult(answer)
}

// Remove removes the member with this tag for good and returns the log index of that. If
// it leads, it hands over first. The change is in the log when Remove returns; Raft's
// configuration follows within moments, or when there is a leader again. Remove is
// refused if too few voters would answer without the member, unless force is set.
// principal is the caller's name; nil if there are no roles. Errors are *outcome.Error or
// carry the refusal in a method Refused.
func (n *Node) Remove(ctx context.Context, tag string, force bool, principal *string) (uint64, error) {
	e, err := n.engine()
	if err != nil {
		return 0, err
	}
	result, err := n.remove(ctx, e, tag, force, principal)
	for overtaken(err) && ctx.Err() == nil {
		result, err = n.remove(ctx, e, tag, force, principal)
	}
	if err != nil {
		return 0, err
	}
	e.awaitGone(ctx, tag)
	return result.GetLogIndex(), nil
}

// remove checks a removal, unless it is forced, and commits it. It is refused if the
// members changed in between.
func (n *Node) remove(ctx context.Context, e *engine, tag string, force bool, principal *string) (*raftlogv1.Result, error) {
	var judged uint64
	if !force {
		var err error
		if judged, err = n.mayRemove(ctx, e, tag); err != nil {
			return nil, err
		}
	}
	if leader, ok := e.leader(); ok && leader.GetTag() == tag && len(e.voters()) > 1 {
		if _, err := n.Transfer(ctx, ""); err != nil {
			n.log.Warn("the leader is removed without having handed over", "tag", tag, "error", err)
		}
	}
	return e.change(ctx, principal, &raftlogv1.MemberRemove{Tag: tag, MembershipIndex: judged})
}

// overtaken reports whether a removal was refused because the members changed since it
// was checked.
func overtaken(err error) bool {
	var refused *op.RefusedError
	return errors.As(err, &refused) && refused.Refusal.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY
}

// awaitGone waits a moment for a removed member to leave Raft's configuration as
// this node knows it.
func (e *engine) awaitGone(ctx context.Context, tag string) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	for ctx.Err() == nil && e.node.lifecycle.ctx.Err() == nil && e.inRaft(tag) {
		sleep(ctx, adminPause)
	}
}

func (e *engine) inRaft(tag string) bool {
	m, ok := e.node.roster.byTag(tag)
	if !ok {
		return false
	}
	for _, s := range e.servers() {
		if s.ID == member.ServerID(m.GetId()) {
			return true
		}
	}
	return false
}

// leader returns the leader that this node knows of.
func (e *engine) leader() (*raftlogv1.Member, bool) {
	return e.node.roster.byServerID(e.gatherer.Leader())
}

// Transfer hands leadership to the voter with this tag, or to the one Raft chooses if tag
// is empty, and returns the tag of the leader afterwards. Errors are *outcome.Error or
// *op.RefusedError.
func (n *Node) Transfer(ctx context.Context, tag string) (string, error) {
	e, err := n.engine()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if _, err := e.gatherer.WaitLeader(ctx); err != nil {
		return "", err
	}
	leader, ok := e.leader()
	if !ok {
		return "", outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	if e.isSelf(leader) {
		return n.transferHere(ctx, tag)
	}
	reply, err := n.cfg.Peers.Transfer(ctx, leader.GetTag(), leader.GetGrpcAddress(), &peerv1.TransferRequest{Tag: tag})
	if err != nil {
		return "", err
	}
	m, _ := n.roster.byID(reply.GetLeader())
	return m.GetTag(), nil
}

// transferHere hands this node's own leadership over.
func (n *Node) transferHere(ctx context.Context, tag string) (string, error) {
	e, err := n.engine()
	if err != nil {
		return "", err
	}
	if e.raft.State() != raft.Leader {
		return "", outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	to, err := e.successor(ctx, tag)
	if err != nil || to.ID == raft.ServerID(e.name) {
		return tag, err
	}
	if err := e.transfer(ctx, to); err != nil {
		return "", outcome.NewNotApplied(outcome.NoQuorum, fmt.Errorf("handing over leadership: %w", err))
	}
	return e.awaitSuccessor(ctx)
}

// successor returns the server to hand over to; an empty one leaves the choice
// to Raft.
func (e *engine) successor(ctx context.Context, tag string) (raft.Server, error) {
	if tag == "" {
		return e.heir(), nil
	}
	m, ok := e.node.roster.byTag(tag)
	if !ok || m.GetRemoved() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "there is no member "+tag)
	}
	if reply, ok := e.pinger.reply(m.GetId()); ok && reply.GetStorageFull() && !e.node.space.below.Load() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "the disk of member "+tag+" is nearly full")
	}
	for _, s := range e.servers() {
		if s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter {
			return s, e.mayLead(ctx, m)
		}
	}
	return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "member "+tag+" does not vote")
}

// mayLead refuses a transfer to a member that does not answer.
func (e *engine) mayLead(ctx context.Context, m *raftlogv1.Member) error {
	silent, err := e.silent(ctx, []*raftlogv1.Member{m})
	if err == nil && len(silent) > 0 {
		err = refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE, "member "+m.GetTag()+" does not answer the leader")
	}
	return err
}

func refusal(reason raftlogv1.RefusalReason, detail string) error {
	return &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: reason, Detail: detail, Field: "tag"}}
}

// awaitSuccessor waits until another node is known to lead.
func (e *engine) awaitSuccessor(ctx context.Context) (string, error) {
	for ctx.Err() == nil {
		if m, ok := e.leader(); ok && !e.isSelf(m) {
			return m.GetTag(), nil
		}
		sleep(ctx, adminPause)
	}
	return "", outcome.NewUnknown(outcome.NoQuorum, errors.New("leadership was handed over, but no new leader is known yet"))
}

// Invite asks a waiting node to join through this one, and returns the registered member.
// With an empty tag the node or the cluster chooses one. The node joins with the token,
// which is empty where none is needed.
func (n *Node) Invite(ctx context.Context, address, tag, token string, watcher bool) (*raftlogv1.Member, error) {
	if _, err := n.engine(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, inviteTimeout)
	defer cancel()
	// The node is asked for its id first. So an absent node is distinguished from one
	// that did not answer the invitation and may have joined.
	if _, err := n.cfg.Peers.Hello(ctx, tag, address, &peerv1.HelloRequest{Self: n.member()}); err != nil {
		return nil, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, fmt.Sprintf("no node answers at %s: %v", address, err))
	}
	reply, err := n.cfg.Peers.Invite(ctx, tag, address, &peerv1.InviteRequest{Address: n.cfg.Advertise.GRPC, Tag: tag, Watcher: watcher, Token: token})
	if err != nil {
		return nil, err
	}
	return reply.GetMember(), nil
}

// promote commits that a member may vote.
func (e *engine) promote(ctx context.Context, id []byte) error {
	_, err := e.change(ctx, nil, &raftlogv1.MemberPromote{Id: id})
	return err
}

// raiseFormat commits a newer log format.
func (e *engine) raiseFormat(ctx context.Context, format uint32) error {
	_, err := e.change(ctx, nil, &raftlogv1.FormatRaise{Format: format})
	return err
}

// configurator changes Raft's configuration for the reconcile loop.
type configurator struct{ e *engine }

var _ member.Raft = configurator{}

// Configuration implements member.Raft.
func (c configurator) Configuration() ([]raft.Server, error) {
	f := c.e.raft.GetConfiguration()
	return f.Configuration().Servers, f.Error()
}

// AddVoter implements member.Raft.
func (c configurator) AddVoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.e.raft.AddVoter(id, transport.Address(id), 0, changeTimeout) })
}

// AddNonvoter implements member.Raft.
func (c configurator) AddNonvoter(id raft.ServerID) error {
	return c.await(func() raft.IndexFuture { return c.e.raft.AddNonvoter(id, transport.Address(id), 0, changeTimeout) })
}

// RemoveServer implements member.Raft.
func (c configurator) RemoveServer(id raft.ServerID) error {
	err := c.await(func() raft.IndexFuture { return c.e.raft.RemoveServer(id, 0, changeTimeout) })
	if err == nil {
		// The removed node learns of it when it greets again.
		c.e.transport.Disconnect(id)
	}
	return err
}

// HandOver implements member.Raft.
func (c configurator) HandOver(ctx context.Context) error { return c.e.transfer(ctx, c.e.heir()) }

// await bounds a change of the configuration.
func (c configurator) await(start func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(c.e.node.lifecycle.ctx, changeTimeout)
	defer cancel()
	return awaitFuture(ctx, func() raft.Future { return start() })
}
