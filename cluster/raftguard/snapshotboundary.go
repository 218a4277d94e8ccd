package raftguard

import (
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/disklock"
)

// BoundaryStore is a Store whose log knows the last entry of its newest snapshot, whether the
// log has that entry or not.
//
// When the Raft library (v1.7.3) installs a leader's snapshot, it keeps the log as it is.
// Later it looks only into that log, and not at the snapshot, for the entry before those that a
// leader sends. Two kinds of logs then make it reject all further entries, so that it gets the
// same snapshot repeatedly, until the leader takes another:
//
//   - a log that ends before the snapshot: there is a gap where the snapshot ends. The
//     first entries after it are stored, but if the answer to them is lost, the leader
//     sends them once more, after an entry that cannot be found;
//   - a log that has an entry of another term where the snapshot ends, from a leader that
//     was replaced (issue 697 of the library).
//
// The entries of such a log up to the end of the snapshot may also be uncommitted, and must
// not reach other nodes if this node leads. So they are deleted, and the end of the snapshot
// replaces the last of them. It is above any Store, not only the one with files: the guard
// goes when the library moves, and simulated disks need it as well.
type BoundaryStore struct {
	Store
	// moving is held while a snapshot becomes the boundary, one at a time.
	moving disklock.Mutex
	at     atomic.Pointer[boundary]
}

// boundary is the entry that the newest snapshot ends with. It is committed.
type boundary struct{ index, term uint64 }

// newer reports whether a ends after b, in the order of the store. In one history a lower
// index never has a higher term. Survivors of a recovery each begin with a snapshot of their
// own, and only the leader's may have the higher term.
func (a boundary) newer(b boundary) bool {
	return a.term > b.term || a.term == b.term && a.index > b.index
}

// NewBoundaryStore returns s with its boundary. It repairs what a crash left between a
// snapshot's end and the log.
func NewBoundaryStore(s Store) (*BoundaryStore, error) {
	a := &BoundaryStore{Store: s, moving: disklock.New()}
	metas, err := s.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return a, err
	}
	return a, a.move(boundary{metas[0].Index, metas[0].Term})
}

func (s *BoundaryStore) move(to boundary) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if at := s.at.Load(); at != nil && !to.newer(*at) {
		return nil // A snapshot that was begun before another was installed.
	}
	if err := s.forget(to); err != nil {
		return err
	}
	s.at.Store(&to)
	return nil
}

// forget deletes the log up to the boundary unless it leads there.
func (s *BoundaryStore) forget(to boundary) error {
	first, err := s.FirstIndex()
	if err != nil || first == 0 || first > to.index {
		return err
	}
	var log raft.Log
	switch err := s.Store.GetLog(to.index, &log); {
	case err == nil && log.Term == to.term:
		return nil
	case err != nil && !errors.Is(err, raft.ErrLogNotFound):
		return err
	}
	return s.DeleteRange(first, to.index)
}

// Boundary returns index and term of the newest snapshot's last entry; 0 without a snapshot.
func (s *BoundaryStore) Boundary() (index, term uint64) {
	if at := s.at.Load(); at != nil {
		return at.index, at.term
	}
	return 0, 0
}

// GetLog implements raft.LogStore. For the newest snapshot's last entry it may return an entry
// without contents. The library reads only its term, since it never sends an entry without the
// previous one; the first entry has no previous entry, and is not synthesized.
func (s *BoundaryStore) GetLog(index uint64, log *raft.Log) error {
	err := s.Store.GetLog(index, log)
	at := s.at.Load()
	if !errors.Is(err, raft.ErrLogNotFound) || at == nil || at.index != index || index == 1 {
		return err
	}
	*log = raft.Log{Index: at.index, Term: at.term, Type: raft.LogNoop}
	return nil
}

func (s *BoundaryStore) Snapshots() raft.SnapshotStore {
	return boundarySnapshots{s.Store.Snapshots(), s}
}

// boundarySnapshots is a raft.SnapshotStore each of whose snapshots becomes the
// boundary.
type boundarySnapshots struct {
	raft.SnapshotStore
	store *BoundaryStore
}

// errOlderSnapshot is the error for a snapshot that would set the state back.
var errOlderSnapshot = errors.New("cluster: there is a newer snapshot")

// Create implements raft.SnapshotStore. It refuses a snapshot that is older than the newest:
// the library would install it, and its state would go back to entries that the log no longer
// has; the next entry to apply would then be missing, which the library answers with a panic.
func (s boundarySnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, network raft.Transport,
) (raft.SnapshotSink, error) {
	if s.store.beyond(boundary{index, term}) {
		return nil, errOlderSnapshot
	}
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, network)
	if err != nil {
		return nil, err
	}
	return &boundarySink{SnapshotSink: sink, store: s.store, end: boundary{index, term}}, nil
}

func (s *BoundaryStore) beyond(end boundary) bool {
	at := s.at.Load()
	return at != nil && at.newer(end)
}

// boundarySink moves the boundary when its snapshot is complete, which changes the log: the
// sinks below know snapshots alone.
type boundarySink struct {
	raft.SnapshotSink
	store     *BoundaryStore
	end       boundary
	cancelled bool
}

func (k *boundarySink) Cancel() error {
	k.cancelled = true
	return k.SnapshotSink.Cancel()
}

// Close implements raft.SnapshotSink. A snapshot of this node's own state is written
// concurrently with Raft's main goroutine, which may have installed a newer snapshot meanwhile,
// or may do so while this snapshot's files are synced. The library would take the older one for
// the newest. The store does not: the older snapshot may stay there.
func (k *boundarySink) Close() error {
	if !k.cancelled && k.store.beyond(k.end) {
		return errors.Join(errOlderSnapshot, k.Cancel())
	}
	if err := k.SnapshotSink.Close(); err != nil || k.cancelled {
		return err
	}
	if err := k.store.move(k.end); err != nil {
		return err
	}
	if k.store.beyond(k.end) {
		return errOlderSnapshot
	}
	return nil
}
