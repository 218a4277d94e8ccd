package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// aloneEvery is how often a leader checks whether its snapshot has been followed by an
// entry.
const aloneEvery = 200 * time.Millisecond

// aloneSnapshot takes a snapshot on a leader whose log has nothing but what follows its
// newest snapshot, as soon as an entry follows it. After a recovery of the cluster a
// survivor that stored more has a snapshot that ends further, and refuses this one as
// older. It takes the new one, which ends in a newer term.
type aloneSnapshot struct {
	raft  *raft.Raft
	store Store
	state StateMachine
	log   *slog.Logger
}

// take returns when there is a snapshot that a survivor takes, or ctx ends.
func (a aloneSnapshot) take(ctx context.Context) {
	for {
		end, alone := a.end()
		if !alone {
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
		if sleep(ctx, aloneEvery); ctx.Err() != nil {
			return
		}
	}
}

// end returns the index that the newest snapshot ends with, and whether the log has
// nothing from before.
func (a aloneSnapshot) end() (index uint64, alone bool) {
	metas, err := a.store.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return 0, false
	}
	first, err := a.store.FirstIndex()
	return metas[0].Index, err == nil && (first == 0 || first > metas[0].Index)
}
