package fsm

import (
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const firstFormat = 1

// formatOf returns the log format from which on nodes can read an operation.
func formatOf(*op.Operation) uint32 { return firstFormat }

// formatRaise raises the log format that leaders write. Raising it to its present value
// changes nothing.
func (c *contents) formatRaise(dst []byte, _ moment, _ op.Operation, raise *raftlogv1.FormatRaise) ([]byte, *refusal) {
	if raise.GetFormat() < c.format {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "format",
			"is %d, and the cluster writes %d already", raise.GetFormat(), c.format)
	}
	if m := c.members.below(raise.GetFormat()); m != nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "format",
			"is %d, and %s knows formats up to %d", raise.GetFormat(), m.GetTag(), knownFormat(m))
	}
	c.format = raise.GetFormat()
	return dst, nil
}
