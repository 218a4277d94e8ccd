package cluster

import (
	"time"

	"github.com/idnode/idnode/cluster/commit"
)

// Events are callbacks for metrics. They run where the work is done and must be quick. Wrote and
// SnapshotWritten may be nil.
type Events struct {
	Groups  commit.Events
	Entries commit.BatcherEvents
	// Forwarded is called for each group that this node sends to another node, and Received for
	// each group that it receives from one.
	Forwarded, Received func()
	// LeaderChanged is called when the leader that this node knows changes; not for the first
	// leader.
	LeaderChanged func()
	// StateDiffers is called when another member's state is found to differ from
	// this node's, at the same log entry.
	StateDiffers func()
	// Wrote is called after each write to the log and the votes, fsync included.
	Wrote func(took time.Duration)
	// SnapshotWritten is called for each snapshot that was written, with its size without
	// the store's own frame. The time includes the writer's pauses.
	SnapshotWritten func(bytes int64, took time.Duration)
	// SnapshotRefused is called for each snapshot that was refused or given up for lack
	// of space.
	SnapshotRefused func()
}
