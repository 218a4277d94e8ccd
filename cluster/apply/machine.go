package apply

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

// Machine is the state machine as Raft sees it. It implements raft.ConfigurationStore so
// that Raft hands it configuration entries too: with them the state's applied index
// reaches every index that a reader may wait for, and a snapshot can be taken right after
// a change of the membership. It does not implement raft.BatchingFSM: an entry holds a
// batch already.
//
// Invariant: after the first error nothing is applied, snapshotted or restored, and each
// entry's response is that error, not a result.
type Machine struct {
	// ctx ends with the node.
	ctx    context.Context
	cfg    Config
	states States
	bytes  *appliedBytes
	broken atomic.Pointer[error]
}

// Config is what a Machine needs.
type Config struct {
	State State
	// Freeze is called from the goroutine that applies.
	Freeze func() Snapshot
	// SnapshotBytes is how much may be applied before a snapshot is due.
	SnapshotBytes int64
	// SnapshotWritten learns of each snapshot that is whole; it may be nil.
	SnapshotWritten func(bytes int64, took time.Duration)
	// Fatal ends the node. It is called once.
	Fatal  func(error)
	Logger *slog.Logger
}

// NewMachine returns a Machine. ctx ends with the node, and cuts a snapshot short.
func NewMachine(ctx context.Context, cfg Config) *Machine {
	return &Machine{ctx: ctx, cfg: cfg, bytes: &appliedBytes{limit: cfg.SnapshotBytes}}
}

// States returns the hashes of the newest states.
func (m *Machine) States() *States { return &m.states }

var _ raft.ConfigurationStore = (*Machine)(nil)

func (m *Machine) fail(err error) error {
	if m.broken.CompareAndSwap(nil, &err) {
		m.cfg.Logger.Error("the state machine stops", "error", err)
		m.cfg.Fatal(err)
	}
	return *m.broken.Load()
}

// Failure returns the first error, or nil.
func (m *Machine) Failure() error {
	if p := m.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// Apply implements raft.FSM. The response is a []raftlog.GroupResult, or an
// error.
func (m *Machine) Apply(entry *raft.Log) any {
	if err := m.Failure(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.ApplyBefore)
	results, err := m.cfg.State.Apply(entry.Index, entry.Data)
	if err != nil {
		return m.fail(fmt.Errorf("cluster: applying log entry %d: %w", entry.Index, err))
	}
	failpoint.Hit(failpoint.ApplyAfter)
	m.states.add(m.cfg.State.Hash())
	m.bytes.applied(len(entry.Data))
	return results
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *Machine) StoreConfiguration(index uint64, _ raft.Configuration) {
	if m.Failure() == nil {
		m.cfg.State.Skip(index)
		m.states.add(m.cfg.State.Hash())
	}
}

func (m *Machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.Failure(); err != nil {
		return nil, err
	}
	m.bytes.frozen()
	return frozen{m, m.cfg.Freeze()}, nil
}

// Restore implements raft.FSM. A snapshot that cannot be read leaves a state
// that must not be used.
func (m *Machine) Restore(snapshot io.ReadCloser) error {
	defer func() { _ = snapshot.Close() }() // It was only read.
	if err := m.Failure(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RestoreBefore)
	if err := m.cfg.State.Restore(snapshot); err != nil {
		return m.fail(fmt.Errorf("cluster: restoring a snapshot: %w", err))
	}
	failpoint.Hit(failpoint.RestoreAfter)
	m.states.replace()
	return nil
}

type frozen struct {
	machine  *Machine
	snapshot Snapshot
}

func (f frozen) Persist(sink raft.SnapshotSink) error {
	failpoint.Hit(failpoint.SnapshotBefore)
	started := time.Now()
	n, err := f.snapshot.WriteTo(newPacedWriter(f.machine.ctx, sink))
	if err != nil {
		_ = sink.Cancel() // The first error counts.
		return err
	}
	failpoint.Hit(failpoint.SnapshotWritten)
	if err := sink.Close(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.SnapshotAfter)
	if written := f.machine.cfg.SnapshotWritten; written != nil {
		written(n, time.Since(started))
	}
	return nil
}

func (f frozen) Release() { f.snapshot.Close() }
