package leader

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/raftguard"
)

// recoverySnapshotEvery is how often a leader checks whether an entry has followed its
// snapshot.
const recoverySnapshotEvery = 200 * time.Millisecond

// recoverySnapshot takes the first snapshot after a recovery of the cluster: on a leader whose
// log has only entries after its newest snapshot, as soon as there is one. A survivor that
// stored more has a snapshot that ends further, and refuses the leader's as older. It accepts
// the new snapshot, which ends in a newer term.
type recoverySnapshot struct{ cfg *Config }

// duty takes the snapshot in one leadership, and is done when a survivor can accept it.
func (a recoverySnapshot) duty() duty.Duty {
	done := false
	take := func(ctx context.Context) (err error) {
		done, err = a.take(ctx)
		return err
	}
	check := func(time.Time) duty.Task {
		if done {
			return nil
		}
		return take
	}
	return duty.Duty{
		Name: "recovery snapshot", Every: recoverySnapshotEvery, Check: check, Late: true,
		Failed: "no snapshot of this leadership yet", Level: slog.LevelDebug,
	}
}

// take takes the snapshot, if it is time to. It reports whether none is missing.
func (a recoverySnapshot) take(ctx context.Context) (done bool, err error) {
	end, only := a.end()
	if !only || a.cfg.State.AppliedIndex() <= end {
		return !only, nil
	}
	err = raftguard.Await(ctx, func() raft.Future { return a.cfg.Raft.Snapshot() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return false, nil
	}
	return err == nil, err
}

// end returns the index that the newest snapshot ends with, and whether the log has
// nothing from before.
func (a recoverySnapshot) end() (index uint64, only bool) {
	metas, err := a.cfg.Store.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return 0, false
	}
	first, err := a.cfg.Store.FirstIndex()
	return metas[0].Index, err == nil && (first == 0 || first > metas[0].Index)
}
