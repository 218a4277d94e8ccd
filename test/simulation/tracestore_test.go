package simulation

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/model"
)

// tracedStore is a process's store whose steps the model judges.
type tracedStore struct {
	cluster.Store
	process *process
	tracer  *tracer
	// voting is the term of the vote that is being written.
	voting uint64
	// appended is the newest entry that was sent before it was written, in this term.
	appended atomic.Uint64
	// failed means that a write failed. A store begins none after that, though the library
	// may ask for more until the node has ended.
	failed atomic.Bool
}

// Appended tells the model of entries that a leader sends while they are written.
func (s *tracedStore) Appended(logs []*raft.Log) {
	s.appended.Store(logs[len(logs)-1].Index)
	s.write(logs)
}

// write tells the model of entries that other nodes may have from now on.
func (s *tracedStore) write(logs []*raft.Log) {
	if len(logs) == 0 {
		return
	}
	entries := make([]model.Entry, 0, len(logs))
	for _, log := range logs {
		entries = append(entries, entryOf(log))
	}
	first, last := logs[0], logs[len(logs)-1]
	s.tracer.take(s.process, "writes %d to %d, of term %d", [3]any{first.Index, last.Index, last.Term}, func(member string) error {
		return s.tracer.cluster.Write(member, entries)
	})
}

// traced returns a process's store with the model told what it holds.
func (t *tracer) traced(p *process, member string, store cluster.Store) (cluster.Store, error) {
	disk, err := diskOf(store)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	p.member, t.running[p.server.host], t.names[member] = member, p, p.server.host
	t.mu.Unlock()
	t.take(p, "starts in term %d with a log up to %d and a snapshot of %d", [3]any{disk.Term, lastOf(disk), disk.Index}, func(string) error {
		err := t.cluster.Start(member, disk, p.session.older())
		if p.server.trusts.Load() {
			t.cluster.Trust(member)
			p.session.trusted()
		}
		return err
	})
	return &tracedStore{Store: store, process: p, tracer: t}, nil
}

func lastOf(d model.Disk) uint64 {
	if len(d.Entries) == 0 {
		return d.Index
	}
	return d.Entries[len(d.Entries)-1].Index
}

// diskOf reads what a store holds.
func diskOf(store cluster.Store) (d model.Disk, err error) {
	if d.Term, err = store.GetUint64([]byte("CurrentTerm")); noKey(err) != nil {
		return d, err
	}
	if d.Voted, d.Candidate, err = voteOf(store); err != nil {
		return d, err
	}
	metas, err := store.Snapshots().List()
	if err != nil {
		return d, err
	}
	for _, m := range metas {
		if m.Index >= d.Index {
			d.Index, d.SnapshotTerm, d.Voters = m.Index, m.Term, votersOf(m.Configuration)
		}
	}
	first, err := store.FirstIndex()
	if err != nil || first == 0 {
		return d, err
	}
	last, err := store.LastIndex()
	for index := first; err == nil && index <= last; index++ {
		var log raft.Log
		if err := store.GetLog(index, &log); errors.Is(err, raft.ErrLogNotFound) {
			continue
		} else if err != nil {
			return d, err
		}
		d.Entries = append(d.Entries, entryOf(&log))
	}
	return d, err
}

// voteOf reads the newest vote that a store holds.
func voteOf(store cluster.Store) (term uint64, candidate string, err error) {
	vote, err := store.Get([]byte("LastVoteCand"))
	if err != nil {
		return 0, "", noKey(err)
	}
	term, err = store.GetUint64([]byte("LastVoteTerm"))
	return term, string(vote), err
}

// noKey returns nil for the error of a key that was never set.
func noKey(err error) error {
	if err != nil && err.Error() == errNoKey.Error() {
		return nil
	}
	return err
}

// StoreLog implements raft.LogStore.
func (s *tracedStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (s *tracedStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return s.Store.StoreLogs(logs)
	}
	last := logs[len(logs)-1]
	if last.Index > s.appended.Load() && !s.failed.Load() {
		s.write(logs)
	}
	if err := s.changed(func() error { return s.Store.StoreLogs(logs) }); err != nil {
		return err
	}
	s.tracer.take(s.process, "has %d on disk", [3]any{last.Index}, func(member string) error {
		return s.tracer.cluster.Sync(member, last.Index)
	})
	return nil
}

// changed changes the log: none succeeds that began after one that failed.
func (s *tracedStore) changed(change func() error) error {
	failed := s.failed.Load()
	err := change()
	switch {
	case err != nil && strings.Contains(err.Error(), "does not follow"): // It wrote nothing.
	case err != nil:
		s.failed.Store(true)
	case failed:
		s.tracer.take(s.process, "goes on after a write that failed", [3]any{}, func(string) error {
			return errors.New("its store takes a write after one that failed")
		})
	}
	return err
}

// DeleteRange implements raft.LogStore.
func (s *tracedStore) DeleteRange(first, last uint64) error {
	end, err := s.LastIndex()
	if err != nil {
		return err
	}
	to := min(last, max(end, first))
	if !s.failed.Load() {
		s.tracer.take(s.process, "deletes %d to %d", [3]any{first, to}, func(member string) error {
			return s.tracer.cluster.Delete(member, first, to)
		})
	}
	if err := s.changed(func() error { return s.Store.DeleteRange(first, last) }); err != nil {
		return err
	}
	s.tracer.take(s.process, "has deleted %d to %d", [3]any{first, to}, func(member string) error {
		return s.tracer.cluster.Deleted(member, first, to)
	})
	return nil
}

// SetUint64 implements raft.StableStore.
func (s *tracedStore) SetUint64(key []byte, value uint64) error {
	err := s.Store.SetUint64(key, value)
	switch {
	case err != nil:
	case string(key) == "LastVoteTerm":
		s.voting = value
	case string(key) == "CurrentTerm":
		s.appended.Store(0)
		s.tracer.take(s.process, "is in term %d", [3]any{value}, func(member string) error {
			return s.tracer.cluster.Hear(member, value)
		})
	}
	return err
}

// Set implements raft.StableStore.
func (s *tracedStore) Set(key, value []byte) error {
	err := s.Store.Set(key, value)
	if err == nil && string(key) == "LastVoteCand" {
		candidate := string(value)
		s.tracer.take(s.process, "votes in term %d for %s", [3]any{s.voting, candidate}, func(member string) error {
			return s.tracer.cluster.Vote(member, s.voting, candidate)
		})
	}
	return err
}

// Snapshots implements cluster.Store.
func (s *tracedStore) Snapshots() raft.SnapshotStore {
	return tracedSnapshots{s.Store.Snapshots(), s}
}

// tracedSnapshots are the snapshots of a tracedStore.
type tracedSnapshots struct {
	raft.SnapshotStore
	store *tracedStore
}

// Create implements raft.SnapshotStore.
func (s tracedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, network raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, network)
	if err != nil {
		return nil, err
	}
	return &tracedSink{SnapshotSink: sink, store: s.store, index: index, term: term, voters: votersOf(configuration)}, nil
}

// tracedSink is a snapshot that is written.
type tracedSink struct {
	raft.SnapshotSink
	store       *tracedStore
	index, term uint64
	voters      []string
	cancelled   bool
}

// Cancel implements raft.SnapshotSink.
func (k *tracedSink) Cancel() error {
	k.cancelled = true
	return k.SnapshotSink.Cancel()
}

// Close implements raft.SnapshotSink.
func (k *tracedSink) Close() error {
	err := k.SnapshotSink.Close()
	if err != nil || k.cancelled {
		return err
	}
	k.store.tracer.take(k.store.process, "has a snapshot of %d, of term %d", [3]any{k.index, k.term}, func(member string) error {
		return k.store.tracer.cluster.Snapshot(member, k.index, k.term, k.voters)
	})
	return nil
}
