package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/server/node"
)

var (
	errNoKey   = errors.New("not found") // The library knows it by this text.
	errMissing = errors.New("what should be stored is missing")
)

// storage is a session as a node's storage.
type storage struct {
	*session
	plan    plan
	process *process
}

var _ node.Storage = storage{}

// LoadRecord implements cluster.Storage.
func (s storage) LoadRecord() (record *member.Record, err error) {
	var hasStore bool
	err = s.read(func(i *image) error {
		hasStore = i.hasStore
		if i.record != nil {
			record = i.record.Clone()
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case record == nil && hasStore, record != nil && record.InCluster() && !hasStore:
		return nil, errMissing
	case record != nil:
		return record, nil
	}
	record = &member.Record{ID: member.NewID()}
	return record, s.SaveRecord(record)
}

// SaveRecord implements cluster.Storage.
func (s storage) SaveRecord(record *member.Record) error {
	record = record.Clone()
	return s.commit(func(i *image) { i.record = record })
}

// OpenStore implements cluster.Storage.
func (s storage) OpenStore(o cluster.StoreOptions) (cluster.Store, error) {
	exists := false
	err := s.read(func(i *image) error {
		s.limit, s.fatal, s.slow, s.slowed = o.StallLimit, o.Fatal, o.SlowLimit, o.Slowed
		if o.Slowed == nil {
			s.slowed = func(bool) {}
		}
		exists = i.hasStore
		if o.MustExist && !i.hasStore {
			return errMissing
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var store cluster.Store = raftStore{s.session}
	if s.plan.wal {
		if store, err = s.openWAL(exists, o.NodeID); err != nil {
			return nil, err
		}
	}
	if s.plan.slow.terms {
		store = slowTerms{store, s.session}
	}
	if err := s.commit(func(i *image) { i.hasStore = true }); err != nil {
		return nil, err
	}
	return s.process.server.world.tracer.traced(s.process, o.NodeID, store)
}

// LoadWitness implements cluster.Storage.
func (s storage) LoadWitness() (data []byte, err error) {
	err = s.read(func(i *image) error {
		data = i.witness
		return nil
	})
	return data, err
}

// SaveWitness implements cluster.Storage.
func (s storage) SaveWitness(data []byte) error {
	return s.commit(func(i *image) { i.witness = data })
}

// OpenEtags implements node.Storage.
func (s storage) OpenEtags(id []byte, mustExist bool) (etag.Store, error) {
	err := s.read(func(i *image) error {
		if mustExist && !i.hasEtags {
			return errMissing
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.process.server.world.tracer.tracedEtags(s.process, id, etagStore{s.session}), s.commit(func(i *image) { i.hasEtags = true })
}

// raftStore is a session as a cluster.Store.
type raftStore struct{ *session }

// FirstIndex implements raft.LogStore.
func (s raftStore) FirstIndex() (first uint64, err error) {
	err = s.read(func(i *image) error {
		first, _ = i.bounds()
		return nil
	})
	return first, err
}

// LastIndex implements raft.LogStore.
func (s raftStore) LastIndex() (last uint64, err error) {
	err = s.read(func(i *image) error {
		_, last = i.bounds()
		return nil
	})
	return last, err
}

// GetLog implements raft.LogStore.
func (s raftStore) GetLog(index uint64, log *raft.Log) error {
	found, lost := false, false
	s.survive(s.read(func(i *image) error {
		var stored *raft.Log
		if stored, found = i.log[index]; found {
			*log = *stored
			return nil
		}
		_, last := i.bounds()
		lost = index < last && (i.snapshot == nil || index > i.snapshot.meta.Index)
		return nil
	}))
	switch {
	case lost:
		s.lost(index)
		s.survive(raft.ErrLogNotFound)
	case !found:
		return raft.ErrLogNotFound
	}
	return nil
}

// StoreLog implements raft.LogStore.
func (s raftStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (s raftStore) StoreLogs(logs []*raft.Log) error {
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	writes := make([]write, 0, len(logs))
	for _, log := range logs {
		if log.Index <= last {
			return fmt.Errorf("simulated store: log entry %d does not follow %d", log.Index, last)
		}
		last = log.Index
		stored := *log
		stored.Data, stored.Extensions = bytes.Clone(log.Data), bytes.Clone(log.Extensions)
		writes = append(writes, func(i *image) { i.log[stored.Index] = &stored })
	}
	return s.mustCommit(writes...)
}

// DeleteRange implements raft.LogStore.
func (s raftStore) DeleteRange(first, last uint64) error {
	return s.mustCommit(func(i *image) {
		maps.DeleteFunc(i.log, func(index uint64, _ *raft.Log) bool { return first <= index && index <= last })
	})
}

// Set implements raft.StableStore. The term of a vote is written with the candidate, and
// nothing is if it is there, as package store does it.
func (s raftStore) Set(key, value []byte) error {
	const voteTerm, voteCandidate = "LastVoteTerm", "LastVoteCand"
	name, value := string(key), bytes.Clone(value)
	var term []byte
	same := false
	err := s.read(func(i *image) error {
		same = name != voteCandidate && bytes.Equal(i.stable[name], value)
		if name == voteTerm {
			i.stable[name] = value
		}
		term = i.stable[voteTerm]
		return nil
	})
	if err != nil || same || name == voteTerm {
		return err
	}
	return s.transact(func(i *image) {
		i.stable[name] = value
		if name == voteCandidate && term != nil {
			i.stable[voteTerm] = term
		}
	})
}

// Get implements raft.StableStore.
func (s raftStore) Get(key []byte) (value []byte, err error) {
	err = s.read(func(i *image) error {
		found, ok := i.stable[string(key)]
		if !ok {
			return errNoKey
		}
		value = bytes.Clone(found)
		return nil
	})
	return value, err
}

// SetUint64 implements raft.StableStore.
func (s raftStore) SetUint64(key []byte, value uint64) error {
	err := s.Set(key, binary.BigEndian.AppendUint64(nil, value))
	s.survive(err)
	return err
}

// GetUint64 implements raft.StableStore.
func (s raftStore) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

// Snapshots implements cluster.Store.
func (s raftStore) Snapshots() raft.SnapshotStore { return snapshots(s) }

// Close implements cluster.Store.
func (s raftStore) Close() error { return nil }

// snapshots is a session as a raft.SnapshotStore, with the newest snapshot only.
type snapshots struct{ *session }

// Create implements raft.SnapshotStore.
func (s snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &sink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, time.Now().UnixNano()), Index: index, Term: term,
		Configuration: configuration.Clone(), ConfigurationIndex: configurationIndex,
	}}, s.read(func(*image) error { return nil })
}

// List implements raft.SnapshotStore.
func (s snapshots) List() (metas []*raft.SnapshotMeta, err error) {
	err = s.read(func(i *image) error {
		if i.snapshot != nil {
			meta := i.snapshot.meta
			metas = append(metas, &meta)
		}
		return nil
	})
	return metas, err
}

// Open implements raft.SnapshotStore.
func (s snapshots) Open(id string) (meta *raft.SnapshotMeta, content io.ReadCloser, err error) {
	err = s.read(func(i *image) error {
		if i.snapshot == nil || i.snapshot.meta.ID != id {
			return fmt.Errorf("snapshot %s is not the newest", id)
		}
		copied := i.snapshot.meta
		meta, content = &copied, io.NopCloser(bytes.NewReader(i.snapshot.data))
		return nil
	})
	return meta, content, err
}

// forget takes back a snapshot whose writing failed.
func (s snapshots) forget(failed *snapshot) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.live.snapshot == failed {
		s.live.snapshot = s.disk.durable.snapshot
	}
}

// sink takes one snapshot. Nothing of it is kept before Close.
type sink struct {
	store  snapshots
	meta   raft.SnapshotMeta
	buffer bytes.Buffer
	done   bool
}

// Write implements raft.SnapshotSink.
func (k *sink) Write(b []byte) (int, error) { return k.buffer.Write(b) }

// ID implements raft.SnapshotSink.
func (k *sink) ID() string { return k.meta.ID }

// Cancel implements raft.SnapshotSink.
func (k *sink) Cancel() error {
	k.done = true
	return nil
}

// Close implements raft.SnapshotSink.
func (k *sink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	k.meta.Size = int64(k.buffer.Len())
	made := &snapshot{meta: k.meta, data: k.buffer.Bytes()}
	err := k.store.commit(func(i *image) {
		// One that was installed may be newer than one that was begun before.
		if i.snapshot == nil || i.snapshot.before(made) {
			i.snapshot = made
		}
	})
	if err != nil {
		k.store.forget(made)
	}
	return err
}

// etagStore is a session as an etag.Store.
type etagStore struct{ *session }

// Load implements etag.Store.
func (s etagStore) Load() (state etag.Stored, err error) {
	err = s.read(func(i *image) error {
		state = i.etags
		state.Databases = maps.Clone(i.etags.Databases)
		return nil
	})
	return state, err
}

// Reserve implements etag.Store.
func (s etagStore) Reserve(r etag.Reservation) error {
	limits := maps.Clone(r.Limits)
	return s.commit(func(i *image) {
		i.etags.Clean = false
		if r.Start != 0 {
			i.etags.Start = r.Start
		}
		maps.Copy(i.etags.Databases, limits)
	})
}

// Stop implements etag.Store.
func (s etagStore) Stop(last map[string]uint64) error {
	last = maps.Clone(last)
	return s.commit(func(i *image) {
		i.etags.Clean = true
		maps.Copy(i.etags.Databases, last)
	})
}

// Close implements etag.Store.
func (s etagStore) Close() error { return nil }
