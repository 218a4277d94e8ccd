package apply

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/pause"
)

// appliedBytes counts the bytes of the entries applied since the state was last frozen
// for a snapshot. The Raft library counts entries only. Only the goroutine that
// applies uses it; full is atomic.
type appliedBytes struct {
	bytes, limit int64
	// full means that the limit was passed.
	full atomic.Bool
}

// applied counts an entry. Each time the limit is passed the count restarts, so that a
// failed snapshot is tried again.
func (v *appliedBytes) applied(bytes int) {
	v.bytes += int64(bytes)
	if v.bytes < v.limit {
		return
	}
	v.bytes = 0
	v.full.Store(true)
}

func (v *appliedBytes) frozen() { v.bytes = 0 }

// maxTurn bounds the time between the snapshots of two nodes.
const maxTurn = 10 * time.Second

// snapshotTick is how often a node checks whether SnapshotBytes have been applied.
const snapshotTick = 250 * time.Millisecond

// SnapshotDuty takes a snapshot of r each time SnapshotBytes have been applied. All nodes want it
// at the same entry, so each waits for its turn within interval.
func (m *Machine) SnapshotDuty(r *raft.Raft, self raft.ServerID, interval time.Duration) duty.Duty {
	take := func(ctx context.Context) error {
		pause.For(ctx, turn(r.GetConfiguration().Configuration().Servers, self, interval))
		err := raftguard.Await(ctx, func() error { return r.Snapshot().Error() })
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
