package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// maxTurn bounds the time between the snapshots of two nodes.
const maxTurn = 10 * time.Second

// snapshotByBytes takes a snapshot each time enough has been applied. All nodes want it at
// the same entry, so each waits for its turn.
func (e *engine) snapshotByBytes(ctx context.Context) {
	for {
		select {
		case <-e.machine.Full():
		case <-ctx.Done():
			return
		}
		sleep(ctx, turn(e.configuration.servers(), raft.ServerID(e.node.record.name()), e.node.cfg.SnapshotInterval))
		err := awaitFuture(ctx, func() raft.Future { return e.raft.Snapshot() })
		if err != nil && ctx.Err() == nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			e.node.log.Warn("a snapshot failed", "error", err)
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
