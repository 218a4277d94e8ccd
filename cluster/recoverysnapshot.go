package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// recoverySnapshotEvery is how often a leader checks whether an entry has followed its
// snapshot.
const recoverySnapshotEvery = 200 * time.Millisecond

// recoverySnapshot takes the first snapshot after a recovery of the cluster: on a leader
// whose log has only what follows its newest snapshot, as soon as an entry follows it. A
// survivor that stored more has a snapshot that ends further, and refuses this one as
// older. It takes the new one, which ends in a newer term.
type recoverySnapshot struct {
	raft  *raft.Raft
	store Store
	state StateMachine
	log   *slog.Logger
}

// take returns when there is a snapshot that a survivor takes, or ctx ends.
func (a recoverySnapshot) take(ctx context.Context) {
	for {
		end, only := a.end()
		if !only {
			return
		}
		if a.state.AppliedIndex() > end {
			err := awaitFuture(ctx, func() raft.Future { return a.raft.Snapshot() })
			if err == nil {
				return
			}
			if ctx.Err() == nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
				a.log.Debug("no snapshot of this leadership yet", "because", err)
			}
		}
		if sleep(ctx, recoverySnapshotEvery); ctx.Err() != nil {
			return
		}
	}
}

// end returns the index that the newest snapshot ends with, and whether the log has
// nothing from before.
func (a recoverySnapshot) end() (index uint64, only bool) {
	metas, err := a.store.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return 0, false
	}
	first, err := a.store.FirstIndex()
	return metas[0].Index, err == nil && (first == 0 || first > metas[0].Index)
}
