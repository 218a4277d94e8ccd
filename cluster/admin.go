package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/idnode/idnode/fsm/op"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// inviteTimeout bounds the join of an invited node.
const inviteTimeout = 15 * time.Second

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
	return e.membership.remove(ctx, tag, force, principal)
}

// Transfer hands leadership to the voter with this tag, or to the one Raft chooses if tag
// is empty, and returns the tag of the leader afterwards. Errors are *outcome.Error or
// *op.RefusedError.
func (n *Node) Transfer(ctx context.Context, tag string) (string, error) {
	e, err := n.engine()
	if err != nil {
		return "", err
	}
	return e.handover.request(ctx, tag)
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
	if _, err := n.cfg.Peers.Hello(ctx, tag, address, &peerv1.HelloRequest{Self: n.record.member()}); err != nil {
		return nil, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, fmt.Sprintf("no node answers at %s: %v", address, err))
	}
	reply, err := n.cfg.Peers.Invite(ctx, tag, address, &peerv1.InviteRequest{Address: n.cfg.Advertise.GRPC, Tag: tag, Watcher: watcher, Token: token})
	if err != nil {
		return nil, err
	}
	return reply.GetMember(), nil
}

func refusal(reason raftlogv1.RefusalReason, detail string) error {
	return &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: reason, Detail: detail, Field: "tag"}}
}
