package cluster

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// paperDisk is a Store in memory that remembers in which order it was written.
type paperDisk struct {
	*raft.InmemStore
	snapshots raft.SnapshotStore
	mu        sync.Mutex
	events    []string
	// reading, if set, is called before an entry is read.
	reading func(index uint64)
	// latency is how long it takes to write entries, or a number.
	latency time.Duration
}

func newPaperDisk() *paperDisk {
	return &paperDisk{InmemStore: raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore()}
}

func (d *paperDisk) record(format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprintf(format, a...))
}

// forget returns what was recorded, and forgets it.
func (d *paperDisk) forget() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	events := d.events
	d.events = nil
	return events
}

// slow makes each write of entries, or of a number, take so long.
func (d *paperDisk) slow(latency time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latency = latency
}

func (d *paperDisk) Snapshots() raft.SnapshotStore { return d.snapshots }
func (d *paperDisk) Close() error                  { return nil }

func (d *paperDisk) SetUint64(key []byte, value uint64) error {
	d.record("%s=%d", key, value)
	d.linger()
	return d.InmemStore.SetUint64(key, value)
}

func (d *paperDisk) Set(key, value []byte) error {
	d.record("%s=%s", key, bytes.TrimLeft(value, "0"))
	return d.InmemStore.Set(key, value)
}

func (d *paperDisk) StoreLogs(logs []*raft.Log) error {
	d.record("log %d-%d", logs[0].Index, logs[len(logs)-1].Index)
	d.linger()
	return d.InmemStore.StoreLogs(logs)
}

// linger takes the time of a write. It is virtual.
func (d *paperDisk) linger() {
	d.mu.Lock()
	latency := d.latency
	d.mu.Unlock()
	time.Sleep(latency)
}

func (d *paperDisk) StoreLog(log *raft.Log) error { return d.StoreLogs([]*raft.Log{log}) }

func (d *paperDisk) DeleteRange(first, last uint64) error {
	d.record("delete %d-%d", first, last)
	return d.InmemStore.DeleteRange(first, last)
}

func (d *paperDisk) GetLog(index uint64, log *raft.Log) error {
	d.mu.Lock()
	reading := d.reading
	d.mu.Unlock()
	if reading != nil {
		reading(index)
	}
	return d.InmemStore.GetLog(index, log)
}

// paperMachine is a state machine that remembers what it was given.
type paperMachine struct {
	mu      sync.Mutex
	applied []string
	index   uint64
}

func (m *paperMachine) Apply(log *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.index = append(m.applied, string(log.Data)), log.Index
	return nil
}

func (m *paperMachine) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }

func (m *paperMachine) Restore(content io.ReadCloser) error {
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

func (m *paperMachine) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.applied)
}

func (m *paperMachine) last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index
}
