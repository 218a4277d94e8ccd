package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/failpoint"
)

// machine is the state machine as Raft sees it. It implements raft.ConfigurationStore so
// that Raft hands it configuration entries too: with them the state's applied index
// reaches every index that a reader may wait for, and a snapshot can be taken right after
// a change of the membership. It does not implement raft.BatchingFSM: an entry holds a
// batch already.
//
// Invariant: after the first error nothing is applied, snapshotted or restored, and each
// entry's response is that error, not a result.
type machine struct {
	// ctx ends with the node.
	ctx   context.Context
	state StateMachine
	// states learns the hash of each new state.
	states       *states
	freeze       func() Snapshot
	fatal        func(error)
	log          *slog.Logger
	events       Events
	appliedBytes *appliedBytes
	broken       atomic.Pointer[error]
}

var _ raft.ConfigurationStore = (*machine)(nil)

// fail ends the node.
func (m *machine) fail(err error) error {
	if m.broken.CompareAndSwap(nil, &err) {
		m.log.Error("the state machine stops", "error", err)
		m.fatal(err)
	}
	return *m.broken.Load()
}

func (m *machine) failure() error {
	if p := m.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// Apply implements raft.FSM. The response is a []raftlog.GroupResult, or an
// error.
func (m *machine) Apply(entry *raft.Log) any {
	if err := m.failure(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.ApplyBefore)
	results, err := m.state.Apply(entry.Index, entry.Data)
	if err != nil {
		return m.fail(fmt.Errorf("cluster: applying log entry %d: %w", entry.Index, err))
	}
	failpoint.Hit(failpoint.ApplyAfter)
	m.states.add(m.state.Hash())
	m.appliedBytes.applied(len(entry.Data))
	return results
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) {
	if m.failure() == nil {
		m.state.Skip(index)
		m.states.add(m.state.Hash())
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.failure(); err != nil {
		return nil, err
	}
	m.appliedBytes.frozen()
	return frozen{ctx: m.ctx, snapshot: m.freeze(), written: m.events.SnapshotWritten}, nil
}

// Restore implements raft.FSM. A snapshot that cannot be read leaves a state
// that must not be used.
func (m *machine) Restore(snapshot io.ReadCloser) error {
	defer func() { _ = snapshot.Close() }() // It was only read.
	if err := m.failure(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RestoreBefore)
	if err := m.state.Restore(snapshot); err != nil {
		return m.fail(fmt.Errorf("cluster: restoring a snapshot: %w", err))
	}
	failpoint.Hit(failpoint.RestoreAfter)
	m.states.replace()
	return nil
}

// frozen writes one snapshot.
type frozen struct {
	ctx      context.Context
	snapshot Snapshot
	// written learns of a snapshot that is whole; it may be nil.
	written func(bytes int64, took time.Duration)
}

// Persist implements raft.FSMSnapshot.
func (f frozen) Persist(sink raft.SnapshotSink) error {
	failpoint.Hit(failpoint.SnapshotBefore)
	started := time.Now()
	n, err := f.snapshot.WriteTo(newPacedWriter(f.ctx, sink))
	if err != nil {
		_ = sink.Cancel() // The error that counts is the one that stopped us.
		return err
	}
	failpoint.Hit(failpoint.SnapshotWritten)
	if err := sink.Close(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.SnapshotAfter)
	if f.written != nil {
		f.written(n, time.Since(started))
	}
	return nil
}

// Release implements raft.FSMSnapshot.
func (f frozen) Release() { f.snapshot.Close() }
