package raftguard

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// unstable holds the newest entries of a leader's log, which are not on disk yet (the word is
// etcd-io/raft's). They are readable, so that they are sent while they are written (Raft
// thesis, 10.2.1). One goroutine writes all that wait with one sync. It is safe for concurrent
// use.
//
// Invariant: entries are consecutive, and the end of the log. An entry leaves them only when it
// is on disk. Nothing else is written to the store before they are empty, except that the
// beginning of the log is deleted.
type unstable struct {
	store func(logs []*raft.Log) error
	// appended, if set, is called with entries when they are readable, before store gets them.
	appended func(logs []*raft.Log)
	// failed is called once, with the error of a write.
	failed func(error)

	mu      sync.Mutex
	entries []*raft.Log
	writing bool
	err     error
	// changed is closed when a write has ended; nil if no goroutine waits.
	changed chan struct{}
}

// appendObserver is a Store that learns of entries before they are written, when other nodes
// may have them: for a model that judges the order of the steps.
type appendObserver interface{ Appended(logs []*raft.Log) }

// append takes entries that follow the end of the log. It fails once a write has.
func (u *unstable) append(logs []*raft.Log) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.err
	}
	u.entries = append(u.entries, logs...)
	if u.appended != nil {
		u.appended(logs)
	}
	if !u.writing {
		u.writing = true
		go u.write()
	}
	return nil
}

// write writes what waits until nothing does, or a write fails.
func (u *unstable) write() {
	for batch := u.waiting(); len(batch) > 0; batch = u.waiting() {
		err := u.store(batch)
		u.wrote(len(batch), err)
		if err != nil {
			u.failed(err)
			return
		}
	}
}

// waiting returns what waits; with nothing the writer must end.
func (u *unstable) waiting() []*raft.Log {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writing = len(u.entries) > 0
	return slices.Clone(u.entries)
}

func (u *unstable) wrote(n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err = err; err == nil {
		clear(u.entries[:n]) // So that they are not kept in memory.
		u.entries = u.entries[n:]
	}
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}

// await waits until no entry up to index waits for the disk. It fails when ctx ends, or a
// write has failed.
func (u *unstable) await(ctx context.Context, index uint64) error {
	for {
		changed, err := u.waits(index)
		if changed == nil || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waits returns what to wait for until the entries up to index are on disk, nil if they are.
func (u *unstable) waits(index uint64) (<-chan struct{}, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.err != nil:
		return nil, fmt.Errorf("writing the log: %w", u.err)
	case len(u.entries) == 0 || u.entries[0].Index > index:
		return nil, nil
	case u.changed == nil:
		u.changed = make(chan struct{})
	}
	return u.changed, nil
}

// flush waits until all that waits now is on disk. It fails when ctx ends, or a write has
// failed.
func (u *unstable) flush(ctx context.Context) error {
	_, last := u.bounds()
	return u.await(ctx, last)
}

// get reads the entry index; false if the store must be asked.
func (u *unstable) get(index uint64, log *raft.Log) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.entries) == 0 || index < u.entries[0].Index || index > u.entries[len(u.entries)-1].Index {
		return false
	}
	*log = *u.entries[index-u.entries[0].Index]
	return true
}

// bounds returns the first and the last index that wait for the disk, 0 if none does.
func (u *unstable) bounds() (first, last uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.entries) == 0 {
		return 0, 0
	}
	return u.entries[0].Index, u.entries[len(u.entries)-1].Index
}

// Replicates returns whether a node leads, and each quorum has another voter. r returns nil
// before the library runs.
func Replicates(self raft.ServerID, r func() *raft.Raft) func() bool {
	another := func(s raft.Server) bool { return s.Suffrage == raft.Voter && s.ID != self }
	return func() bool {
		r := r()
		return r != nil && r.State() == raft.Leader && slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, another)
	}
}

// AwaitStable waits until the log is on disk up to index. It fails when ctx ends, and once a
// write has failed.
func (s *RaftStore) AwaitStable(ctx context.Context, index uint64) error {
	return s.unstable.await(ctx, index)
}

// Flush waits until all of the log is on disk, and fails as AwaitStable does.
func (s *RaftStore) Flush(ctx context.Context) error { return s.unstable.flush(ctx) }

func (s *RaftStore) FirstIndex() (uint64, error) {
	unstable, _ := s.unstable.bounds() // First: entries go from there to the store.
	first, err := s.Store.FirstIndex()
	if err == nil && first == 0 {
		first = unstable
	}
	return first, err
}

func (s *RaftStore) LastIndex() (uint64, error) {
	if _, last := s.unstable.bounds(); last > 0 {
		return last, nil
	}
	return s.Store.LastIndex()
}

// writesBeside reports whether entries may be written while they are sent. No configuration
// is: the library counts by it as soon as it is in the log, and where the leader is the only
// voter that is left, its own count alone commits.
func (s *RaftStore) writesBeside(logs []*raft.Log) bool {
	return s.cfg.Replicates != nil && s.running.Load() && s.cfg.Replicates() &&
		!slices.ContainsFunc(logs, func(l *raft.Log) bool { return l.Type == raft.LogConfiguration })
}
