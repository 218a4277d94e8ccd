package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/pause"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

const (
	// barrierTimeout bounds the wait for the entries of earlier leaders to be
	// applied here. It covers a long log replayed after a restart.
	barrierTimeout    = 60 * time.Second
	establishPause    = 100 * time.Millisecond
	maxEstablishTries = 3
)

// establish makes this node ready to lead. If it cannot, it transfers leadership, and if that
// fails the node ends: a leader that answers nothing is worse than no leader. It waits for a
// transfer in progress, which has a watchdog of its own.
func (l *Leadership) establish(ctx context.Context) bool {
	var err error
	for tries := 0; tries < maxEstablishTries; tries++ {
		if err = l.prepare(ctx); err == nil || ctx.Err() != nil || l.cfg.Raft.State() != raft.Leader {
			return err == nil
		}
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			tries = -1
		}
		l.cfg.Log.Warn("cannot lead yet", "because", err)
		pause.For(ctx, establishPause)
	}
	if transferErr := l.Transfer.ToAny(ctx); transferErr != nil && ctx.Err() == nil && l.cfg.Raft.State() == raft.Leader {
		l.cfg.Record.Fail(fmt.Errorf("cluster: cannot lead, and cannot transfer leadership (%w): %w", transferErr, err))
	}
	return false
}

// prepare passes the first barrier, so that the state holds everything that earlier
// leaders committed, and forms the cluster if it is not formed yet.
//
// The read index is the barrier's own index, never the commit index: an entry of this
// node's last leadership may be committed by now without being applied.
func (l *Leadership) prepare(ctx context.Context) error {
	term := l.cfg.Raft.CurrentTerm()
	barrier, err := l.barrier(ctx)
	l.cfg.Stuck.Saw(err)
	if err != nil {
		return err
	}
	if len(l.cfg.Registry.ClusterID()) == 0 {
		if err := l.form(ctx); err != nil {
			return err
		}
	}
	l.ready.Store(&readindex.Ready{Term: term, Barrier: barrier, Applied: l.cfg.State.AppliedIndex()})
	return nil
}

func (l *Leadership) barrier(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	var future raft.Future
	err := raftguard.Await(ctx, func() error {
		future = l.cfg.Raft.Barrier(commit.EnqueueTimeout)
		return future.Error()
	})
	if err != nil {
		return 0, fmt.Errorf("passing a barrier: %w", err)
	}
	// A barrier is an entry like any other, though Raft does not say so.
	entry, ok := future.(raft.IndexFuture)
	if !ok {
		return 0, errors.New("passing a barrier: its index is not known")
	}
	return entry.Index(), nil
}

// form writes the entry that forms the cluster, from the plan in the node's record. All
// nodes of a first start have the same plan, so it does not matter who leads first; a
// second such entry is refused by the state machine.
func (l *Leadership) form(ctx context.Context) error {
	record := l.cfg.Record.Get()
	operation, err := op.Envelope{}.Encode(&raftlogv1.Bootstrap{ClusterId: record.ClusterID, Members: record.Members})
	if err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	header := raftlog.Header{Format: 1, ClusterID: record.ClusterID, TimeUnixNano: l.cfg.Now().UnixNano()}
	entry := raftlog.AppendEntry(nil, header, [][]byte{group})
	select {
	case formed := <-(&commit.RaftLog{Applier: l.cfg.Raft}).Append(entry):
		if formed.Err != nil {
			return fmt.Errorf("forming the cluster: %w", formed.Err)
		}
		if len(formed.Results) != 1 || formed.Results[0].Status != raftlog.Applied {
			return errors.New("forming the cluster: the state machine refused")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recoverySnapshotEvery is how often a leader checks whether an entry has followed its
// snapshot.
const recoverySnapshotEvery = 200 * time.Millisecond

// recoverySnapshot takes the first snapshot after a recovery of the cluster: on a leader whose
// log has only entries after its newest snapshot, as soon as there is one. A survivor that
// stored more has a snapshot that ends further, and refuses the leader's as older. It accepts
// the new snapshot, which ends in a newer term. It is done when a survivor can accept it.
func (l *Leadership) recoverySnapshot() duty.Duty {
	done := false
	take := func(ctx context.Context) (err error) {
		done, err = l.takeRecoverySnapshot(ctx)
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

// takeRecoverySnapshot takes the snapshot, if it is time to. It reports whether none is missing.
func (l *Leadership) takeRecoverySnapshot(ctx context.Context) (done bool, err error) {
	end, only := l.snapshotEnd()
	if !only || l.cfg.State.AppliedIndex() <= end {
		return !only, nil
	}
	err = raftguard.Await(ctx, func() error { return l.cfg.Raft.Snapshot().Error() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return false, nil
	}
	return err == nil, err
}

// snapshotEnd returns the index that the newest snapshot ends with, and whether the log has
// nothing from before.
func (l *Leadership) snapshotEnd() (index uint64, only bool) {
	metas, err := l.cfg.Store.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return 0, false
	}
	first, err := l.cfg.Store.FirstIndex()
	return metas[0].Index, err == nil && (first == 0 || first > metas[0].Index)
}
