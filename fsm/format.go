package fsm

import (
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// firstFormat is the log format that a cluster begins with.
	firstFormat = 1
	// StrictFormat is the log format with which the stricter rules for merges,
	// claims, etags, retries and starts begin. Below it the state does what nodes of
	// format 2 do, or states would differ during an upgrade.
	StrictFormat = 3
)

// strict reports whether the rules of StrictFormat hold.
func (c *contents) strict() bool { return c.format >= StrictFormat }

// formatOf returns the log format from which on nodes can read an operation.
func formatOf(o *op.Operation) uint32 {
	switch {
	case o.Request.FingerprintBefore != 0 || o.Kind == op.KindJoinTokenCreate || o.Kind.OfSeries():
		return StrictFormat
	case o.Kind == op.KindMerge || o.Kind == op.KindMergeCluster:
		return MergeFormat
	default:
		return firstFormat
	}
}

// formatRaise raises the log format that leaders write. Raising it to its present value
// changes nothing.
func (c *contents) formatRaise(dst []byte, o *op.Operation) ([]byte, *refusal) {
	var raise raftlogv1.FormatRaise
	if err := decodePayload(o, &raise); err != nil {
		return dst, err
	}
	if raise.GetFormat() < c.format {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "format",
			"is %d, and the cluster writes %d already", raise.GetFormat(), c.format)
	}
	if m := c.members.below(raise.GetFormat()); m != nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "format",
			"is %d, and %s knows formats up to %d", raise.GetFormat(), m.GetTag(), knownFormat(m))
	}
	c.setFormat(raise.GetFormat())
	return dst, nil
}

// setFormat stores the log format.
func (c *contents) setFormat(format uint32) {
	// Clients have topologies from before, which the nodes did not order alike.
	c.members.moved = c.members.moved || !c.strict() && format >= StrictFormat
	c.format = format
	c.sessions.hashAgain(c.strict())
	c.etags.hashAgain(c.strict())
}
