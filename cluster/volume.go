package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// volume counts the bytes of the entries applied since the state was last frozen
// for a snapshot. The Raft library counts entries only. Only the goroutine that
// applies uses it, but for full.
type volume struct {
	bytes, limit int64
	// full holds a value when the limit was passed.
	full chan struct{}
}

func newVolume(limit int64) *volume { return &volume{limit: limit, full: make(chan struct{}, 1)} }

// applied counts an entry. Each time the limit is passed it counts anew, so that
// a snapshot that fails is tried again.
func (v *volume) applied(bytes int) {
	v.bytes += int64(bytes)
	if v.bytes < v.limit {
		return
	}
	v.bytes = 0
	select {
	case v.full <- struct{}{}:
	default:
	}
}

// frozen says that a snapshot has begun.
func (v *volume) frozen() { v.bytes = 0 }

// snapshotByVolume takes a snapshot each time enough has been applied.
func (e *engine) snapshotByVolume(ctx context.Context) {
	for {
		select {
		case <-e.volume.full:
		case <-ctx.Done():
			return
		}
		e.awaitTurn(ctx)
		err := awaitFuture(ctx, func() raft.Future { return e.raft.Snapshot() })
		if err != nil && ctx.Err() == nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			e.node.log.Warn("a snapshot failed", "error", err)
		}
	}
}
