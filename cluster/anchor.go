package cluster

import (
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/mutant"
)

// anchoredStore is a Store whose log knows which entry its newest snapshot ends
// with, whether it holds that entry or not.
//
// When the Raft library (v1.7.3) installs a leader's snapshot, it keeps the log
// as it is. Later it looks into that log alone for the entry before those that a
// leader sends, and not at the snapshot. Two kinds of logs then make it reject
// whatever comes next, so that it gets the same snapshot again and again, until
// the leader takes another one:
//
//   - one that lies wholly behind the snapshot: a hole is where the snapshot ends.
//     The first entries after it are stored, but if the answer to them is lost,
//     the leader sends them once more, after an entry that cannot be found;
//   - one that has an entry of another term where the snapshot ends, from a
//     leader that lost its place (issue 697 of the library).
//
// What such a log holds up to the end of the snapshot may also never have been
// committed, and must not reach other nodes should this one lead. So it is
// deleted, and the end of the snapshot answers for the entry itself.
type anchoredStore struct {
	Store
	// moving holds a value while a snapshot becomes the anchor, one at a time. It
	// is no mutex because who holds it waits for the disk: in virtual time nothing
	// moves on while somebody waits for a mutex.
	moving chan struct{}
	at     atomic.Pointer[anchor]
}

// anchor is the entry that the newest snapshot ends with. It is committed.
type anchor struct{ index, term uint64 }

// anchorStore repairs what a crash left between a snapshot's end and the log.
func anchorStore(s Store) (*anchoredStore, error) {
	a := &anchoredStore{Store: s, moving: make(chan struct{}, 1)}
	metas, err := s.Snapshots().List()
	if err != nil || len(metas) == 0 {
		return a, err
	}
	return a, a.move(anchor{metas[0].Index, metas[0].Term})
}

// move makes the end of a new snapshot the anchor.
func (s *anchoredStore) move(to anchor) error {
	s.moving <- struct{}{}
	defer func() { <-s.moving }()
	if at := s.at.Load(); at != nil && at.index >= to.index {
		return nil // A snapshot that was begun before another was installed.
	}
	if err := s.forget(to); err != nil {
		return err
	}
	s.at.Store(&to)
	return nil
}

// forget deletes the log up to the anchor unless it leads there.
func (s *anchoredStore) forget(to anchor) error {
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

// GetLog implements raft.LogStore. In place of the entry that the newest snapshot
// ends with it may give one without contents. The library reads only the term of
// that, since it never sends an entry without the one before it; the first entry
// has none before it, and is not made up.
func (s *anchoredStore) GetLog(index uint64, log *raft.Log) error {
	err := s.Store.GetLog(index, log)
	at := s.at.Load()
	if mutant.On(mutant.AnchorForgotten) || !errors.Is(err, raft.ErrLogNotFound) || at == nil || at.index != index || index == 1 {
		return err
	}
	*log = raft.Log{Index: at.index, Term: at.term, Type: raft.LogNoop}
	return nil
}

// Snapshots implements Store.
func (s *anchoredStore) Snapshots() raft.SnapshotStore {
	return anchoringSnapshots{s.Store.Snapshots(), s}
}

// anchoringSnapshots is a raft.SnapshotStore each of whose snapshots becomes the
// anchor.
type anchoringSnapshots struct {
	raft.SnapshotStore
	store *anchoredStore
}

// Create implements raft.SnapshotStore.
func (s anchoringSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, network raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, network)
	if err != nil {
		return nil, err
	}
	return &anchoringSink{SnapshotSink: sink, store: s.store, end: anchor{index, term}}, nil
}

// anchoringSink moves the anchor when its snapshot is complete.
type anchoringSink struct {
	raft.SnapshotSink
	store     *anchoredStore
	end       anchor
	cancelled bool
}

// Cancel implements raft.SnapshotSink.
func (k *anchoringSink) Cancel() error {
	k.cancelled = true
	return k.SnapshotSink.Cancel()
}

// Close implements raft.SnapshotSink.
func (k *anchoringSink) Close() error {
	if err := k.SnapshotSink.Close(); err != nil || k.cancelled {
		return err
	}
	return k.store.move(k.end)
}
