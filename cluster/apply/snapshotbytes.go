package apply

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/pause"
)

// maxTurn bounds the time between the snapshots of two nodes.
const maxTurn = 10 * time.Second

// SnapshotByBytes takes a snapshot of r each time SnapshotBytes have been applied, until ctx
// ends. All nodes want it at the same entry, so each waits for its turn within interval.
func (m *Machine) SnapshotByBytes(ctx context.Context, r *raft.Raft, self raft.ServerID, interval time.Duration) {
	for {
		select {
		case <-m.bytes.full:
		case <-ctx.Done():
			return
		}
		pause.For(ctx, turn(r.GetConfiguration().Configuration().Servers, self, interval))
		err := raftguard.Await(ctx, func() raft.Future { return r.Snapshot() })
		if err != nil && ctx.Err() == nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			m.cfg.Logger.Warn("a snapshot failed", "error", err)
		}
	}
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
