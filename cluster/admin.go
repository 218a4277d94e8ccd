package cluster

import (
	"context"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// RemoveMember removes the member with this tag for good and returns the log index of that. If
// it leads, it transfers leadership first. The change is in the log when RemoveMember returns; Raft's
// configuration follows within moments, or when there is a leader again. RemoveMember is
// refused if too few voters would answer without the member, unless force is set.
// principal is the caller's name; nil if there are no roles. Errors are *outcome.Error or
// carry the refusal in a method Refused.
func (n *Node) RemoveMember(ctx context.Context, tag string, force bool, principal *string) (uint64, error) {
	e, err := n.engine()
	if err != nil {
		return 0, err
	}
	return e.membership.remove(ctx, tag, force, principal)
}

// Transfer transfers leadership to the voter with this tag, or to the one Raft chooses if tag
// is empty, and returns the tag of the leader afterwards. Errors are *outcome.Error or
// *op.RefusedError.
func (n *Node) Transfer(ctx context.Context, tag string) (string, error) {
	e, err := n.engine()
	if err != nil {
		return "", err
	}
	return e.transfer.request(ctx, tag)
}

func refusal(reason raftlogv1.RefusalReason, detail string) error {
	return &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: reason, Detail: detail, Field: "tag"}}
}
