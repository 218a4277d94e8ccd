package fsm

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/dirfile"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// snapshotFormat is the newest snapshot format that is read and written.
const snapshotFormat = 1

// snapshots are files of the form of a backup, with a SnapshotHeader.
var snapshots = backup.FileKind{
	Name: "snapshot", Corrupt: ErrCorrupt, Newer: fmt.Errorf("%w: a newer program wrote it", dirfile.ErrOtherVersion),
}

// Snapshot is the state as it was at one log index. It shares memory with the state,
// which copies on write while the Snapshot is held.
type Snapshot struct {
	header *raftlogv1.SnapshotHeader
	// local are the records that are no use to another cluster, shared the others, which come first.
	shared, local []records
}

// records are those of a part of the state, as it was at one log index. A record is valid until the next
// is requested; one goroutine at a time requests them.
type records = iter.Seq[*raftlogv1.SnapshotRecord]

// Snapshot returns the state as it is now. It takes some microseconds, whatever the size
// of the state. It may be called from any goroutine.
func (s *State) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents.snapshot(&s.mu)
}

// Close lets go of the memory that the snapshot shares with the state. It is
// not to be called while WriteTo runs.
func (s *Snapshot) Close() { *s = Snapshot{header: s.header} }

// Header returns the header before the records; it must not be changed.
func (s *Snapshot) Header() *raftlogv1.SnapshotHeader { return s.header }

// WriteTo writes the snapshot and returns how many bytes that took. It may run
// beside Apply.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	to := &backup.Counted{Writer: w}
	out, err := snapshots.NewWriter(to, s.header)
	if err == nil {
		err = s.EachRecord(out.Record)
	}
	if err == nil {
		err = each(s.local, out.Record)
	}
	if err == nil {
		err = out.Close()
	}
	return to.Bytes, err
}

// EachRecord calls f for each record in the snapshot's order, until f returns an error,
// and returns that. It leaves out sessions and the membership's index, which are
// meaningless outside the log, join tokens, which another cluster must not restore, and
// released ids. A record is valid until f returns. EachRecord may run beside Apply.
func (s *Snapshot) EachRecord(f func(*raftlogv1.SnapshotRecord) error) error {
	return each(s.shared, f)
}

func each(parts []records, f func(*raftlogv1.SnapshotRecord) error) error {
	for _, part := range parts {
		for m := range part {
			if err := f(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshot is called under the state's lock, which later freezes take too.
func (c *contents) snapshot(lock sync.Locker) *Snapshot {
	return &Snapshot{
		header: &raftlogv1.SnapshotHeader{
			Format:       snapshotFormat,
			ClusterId:    c.clusterID,
			AppliedIndex: c.applied,
			StateHash:    c.hash(),
			LogFormat:    c.format,
			FoldVersion:  docid.FoldVersion,
			RequestFloor: c.requests.floor,
		},
		shared: []records{
			c.databases.records(), c.settings.records(), c.roles.records(), c.floor.records(), c.members.records(), c.etags.records(),
			c.identities.records(false), c.identities.records(true), c.hilos.records(), c.claims.records(),
			c.series.records(lock), c.pools.records(lock), c.requests.records(),
		},
		local: []records{c.members.indexRecord(), c.sessions.records(), c.joinTokens.records(), c.claims.releasedRecords()},
	}
}

func these(all ...*raftlogv1.SnapshotRecord) records { return slices.Values(all) }

// recordsOf returns the records of all values, one value after another.
func recordsOf[T any](values []T, of func(T) records) records {
	return recordsOfEach(slices.Values(values), of)
}

func recordsOfEach[T any](values iter.Seq[T], of func(T) records) records {
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		for v := range values {
			for m := range of(v) {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// recordsIn returns the records of all names in a table. There are many, so they reuse one record.
func recordsIn[V any](t *table.Table[V], record func(table.Entry[V]) *raftlogv1.SnapshotRecord) records {
	frozen := t.Freeze()
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		frozen.Scan(func(e table.Entry[V]) bool { return yield(record(e)) })
	}
}
