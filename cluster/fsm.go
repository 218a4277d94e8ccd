package cluster

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// machine is the state machine as Raft sees it. It implements
// raft.ConfigurationStore so that Raft hands it configuration entries too: with
// them the state's applied index reaches every index that a reader may be told
// to wait for, and a snapshot can be taken right after a change of the
// membership. It does not implement raft.BatchingFSM: an entry holds a batch
// already.
//
// Invariant: after the first error nothing is applied, snapshotted or restored
// any more, and each entry's response is that error, which nobody takes for a
// result.
type machine struct {
	state  StateMachine
	freeze func() Snapshot
	fatal  func(error)
	log    *slog.Logger
	broken atomic.Pointer[error]
}

var _ raft.ConfigurationStore = (*machine)(nil)

// fail ends the node.
func (m *machine) fail(err error) error {
	if m.broken.CompareAndSwap(nil, &err) {
		m.log.Error("the state machine cannot go on", "error", err)
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
	results, err := m.state.Apply(entry.Index, entry.Data)
	if err != nil {
		return m.fail(fmt.Errorf("cluster: applying log entry %d: %w", entry.Index, err))
	}
	return results
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *machine) StoreConfiguration(index uint64, _ raft.Configuration) {
	if m.failure() == nil {
		m.state.Skip(index)
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.failure(); err != nil {
		return nil, err
	}
	return frozen{m.freeze()}, nil
}

// Restore implements raft.FSM. A snapshot that cannot be read leaves a state
// that must not be used.
func (m *machine) Restore(snapshot io.ReadCloser) error {
	defer func() { _ = snapshot.Close() }() // It was only read.
	if err := m.failure(); err != nil {
		return err
	}
	if err := m.state.Restore(snapshot); err != nil {
		return m.fail(fmt.Errorf("cluster: restoring a snapshot: %w", err))
	}
	return nil
}

// frozen writes one snapshot.
type frozen struct{ snapshot Snapshot }

// Persist implements raft.FSMSnapshot.
func (f frozen) Persist(sink raft.SnapshotSink) error {
	if _, err := f.snapshot.WriteTo(sink); err != nil {
		_ = sink.Cancel() // The error that counts is the one that stopped us.
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (f frozen) Release() { f.snapshot.Close() }
