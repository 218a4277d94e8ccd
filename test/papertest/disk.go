package papertest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
)

// disk is a Store in memory that remembers in which order it was written.
type disk struct {
	*raft.InmemStore
	snapshots raft.SnapshotStore
	mu        sync.Mutex
	events    []string
	// latency is how long it takes to write entries, or a number.
	latency time.Duration
}

func newDisk() *disk {
	return &disk{InmemStore: raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore()}
}

func (d *disk) record(format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprintf(format, a...))
}

// forget returns what was recorded, and forgets it.
func (d *disk) forget() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	events := d.events
	d.events = nil
	return events
}

// Slow makes each write of entries, or of a number, take so long.
func (d *disk) Slow(latency time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latency = latency
}

func (d *disk) Snapshots() raft.SnapshotStore { return d.snapshots }
func (d *disk) Close() error                  { return nil }

func (d *disk) SetUint64(key []byte, value uint64) error {
	d.record("%s=%d", key, value)
	d.linger()
	return d.InmemStore.SetUint64(key, value)
}

func (d *disk) Set(key, value []byte) error {
	d.record("%s=%s", key, bytes.TrimLeft(value, "0"))
	return d.InmemStore.Set(key, value)
}

func (d *disk) StoreLogs(logs []*raft.Log) error {
	d.record("log %d-%d", logs[0].Index, logs[len(logs)-1].Index)
	d.linger()
	return d.InmemStore.StoreLogs(logs)
}

// linger takes the time of a write. It is virtual.
func (d *disk) linger() {
	d.mu.Lock()
	latency := d.latency
	d.mu.Unlock()
	time.Sleep(latency)
}

func (d *disk) StoreLog(log *raft.Log) error { return d.StoreLogs([]*raft.Log{log}) }

func (d *disk) DeleteRange(first, last uint64) error {
	d.record("delete %d-%d", first, last)
	return d.InmemStore.DeleteRange(first, last)
}

// library is the log as the library has it.
type library struct {
	*raftguard.RaftStore
	// reading, if set, is called before an entry is read.
	reading atomic.Pointer[func(index uint64)]
}

func (l *library) GetLog(index uint64, log *raft.Log) error {
	if reading := l.reading.Load(); reading != nil {
		(*reading)(index)
	}
	return l.RaftStore.GetLog(index, log)
}

// machine is a state machine that remembers what it was given.
type machine struct {
	mu      sync.Mutex
	applied []string
	index   uint64
}

func (m *machine) Apply(log *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.index = append(m.applied, string(log.Data)), log.Index
	return nil
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }

func (m *machine) Restore(content io.ReadCloser) error {
	state, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = []string{"snapshot " + string(state)}
	_, err = fmt.Sscan(string(state), &m.index)
	return err
}

func (m *machine) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.applied)
}

func (m *machine) last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index
}
