package cluster

import "context"

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
	return e.membership.Remove(ctx, tag, force, principal)
}

// Transfer transfers leadership to the voter with this tag, or to Raft's choice if tag is
// empty, and returns the tag of the leader afterwards. Errors are *outcome.Error or
// *op.RefusedError.
func (n *Node) Transfer(ctx context.Context, tag string) (string, error) {
	e, err := n.engine()
	if err != nil {
		return "", err
	}
	return e.transfer.Request(ctx, tag)
}
