package apply

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/pause"
)

// maxTurn bounds the time between the snapshots of two nodes.
const maxTurn = 10 * time.Second

// snapshotTick is how often a node checks whether SnapshotBytes have been applied.
const snapshotTick = 250 * time.Millisecond

// SnapshotDuty takes a snapshot of r each time SnapshotBytes have been applied. All nodes want it
// at the same entry, so each waits for its turn within interval.
func (m *Machine) SnapshotDuty(r *raft.Raft, self raft.ServerID, interval time.Duration) duty.Duty {
	take := func(ctx context.Context) error {
		pause.For(ctx, turn(r.GetConfiguration().Configuration().Servers, self, interval))
		err := raftguard.Await(ctx, func() raft.Future { return r.Snapshot() })
		if errors.Is(err, raft.ErrNothingNewToSnapshot) {
			return nil
		}
		return err
	}
	check := func(time.Time) duty.Task {
		if !m.bytes.full.Swap(false) {
			return nil
		}
		return take
	}
	return duty.Duty{Name: "snapshot", Every: snapshotTick, Check: check, Failed: "a snapshot failed", Level: slog.LevelWarn}
}

// turn is how long a node waits: the nodes' turns are spread over half an interval, in
// the order of their ids.
func turn(servers []raft.Server, self raft.ServerID, interval time.Duration) time.Duration {
	turn := 0
	for _, s := range servers {
		if s.ID < self {
			turn++
		}
	}
	return time.Duration(turn) * min(interval/time.Duration(2*max(1, len(servers))), maxTurn)
}
