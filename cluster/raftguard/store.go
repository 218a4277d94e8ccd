package raftguard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// RaftStore is the node's store for the running Raft library (v1.7.3). Its methods are in
// the files of the defects that they guard against. They need what only a running node
// knows, as the commit index, and so are not with BoundaryStore, which a recovery opens too.
type RaftStore struct {
	Store
	cfg RaftStoreConfig
	// running is set when the library runs: before that its calls come from the
	// goroutine that starts the node, and errors are returned.
	running atomic.Bool
	// term is the current term.
	term uint64
	// configured is no index before the newest entry with a configuration.
	configured atomic.Uint64
	// kept is the end of the log when all of it was to be deleted: see deletesapplied.go.
	kept     atomic.Uint64
	unstable unstable
}

// RaftStoreConfig is what a RaftStore needs.
type RaftStoreConfig struct {
	// Committed returns the newest index that this node knows to be committed, and
	// Fatal ends the node.
	Committed func() uint64
	Fatal     func(error)
	// Needed returns the first entry that a follower needs which catches up: the newest
	// snapshot's last entry, or an earlier one.
	Needed func() uint64
	// Appending, if set, is called before entries are written, or sent while they are. It must be quick.
	Appending func()
	// Writing is called with the term of the newest entry before entries are written, and
	// with 0 after.
	Writing func(term uint64)
	// Wrote, if set, gets the time of each write of entries. It must be quick.
	Wrote func(took time.Duration)
	// EnterTerm is called before a newer term is written, and the returned function afterwards.
	EnterTerm func(term uint64) (entered func())
	// Replicates reports whether this node leads, and each quorum has another voter: then
	// entries are sent while they are written, and the transport must hold the answers until
	// AwaitStable returns nil: see transport.HoldAnswers. Nil means never. WriteFailed is called
	// with the error of such a write.
	Replicates  func() bool
	WriteFailed func(error)
}

// NewRaftStore returns s for a library that does not run yet.
func NewRaftStore(s Store, cfg RaftStoreConfig) *RaftStore {
	term, _ := StoredTerm(s) // The library, which needs it, reports the error.
	r := &RaftStore{Store: s, cfg: cfg, term: term}
	last, _ := s.LastIndex() // The library reports the error.
	r.configured.Store(last)
	r.unstable.store, r.unstable.failed = r.write, cfg.WriteFailed
	if bounded, ok := s.(*BoundaryStore); ok {
		s = bounded.Store
	}
	if o, ok := s.(appendObserver); ok {
		r.unstable.appended = o.Appended
	}
	return r
}

// Configured returns the index of the newest entry with a configuration. After a start it is
// that of a later entry until there is a new configuration.
func (s *RaftStore) Configured() uint64 { return s.configured.Load() }

// Started says that the library runs.
func (s *RaftStore) Started() { s.running.Store(true) }

// SetUint64 implements raft.StableStore. Nothing of a newer term is on disk, and so nothing is
// answered in it, before all entries are: else a former leader could acknowledge entries of its
// own, which another leader sends, as duplicates that its disk lacks.
func (s *RaftStore) SetUint64(key []byte, value uint64) error {
	if err := s.Flush(context.Background()); err != nil {
		return s.exitOnError(err)
	}
	if string(key) == keyTerm && value != s.term {
		s.term = value
		defer s.cfg.EnterTerm(value)()
	}
	return s.exitOnError(s.Store.SetUint64(key, value))
}

func (s *RaftStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *RaftStore) StoreLogs(logs []*raft.Log) error {
	if kept := s.kept.Load(); len(logs) > 0 && logs[0].Index <= kept {
		return s.takenBack(logs[0].Index, kept, s.cfg.Committed())
	}
	if s.cfg.Appending != nil {
		s.cfg.Appending()
	}
	if s.writesBeside(logs) {
		return s.unstable.append(logs)
	}
	if err := s.Flush(context.Background()); err != nil {
		return err
	}
	if len(logs) > 0 {
		s.cfg.Writing(logs[len(logs)-1].Term)
		defer s.cfg.Writing(0)
	}
	for _, log := range logs {
		if log.Type == raft.LogConfiguration {
			s.configured.Store(log.Index)
		}
	}
	return s.write(logs)
}

func (s *RaftStore) write(logs []*raft.Log) error {
	begin := time.Now()
	err := s.Store.StoreLogs(logs)
	if s.cfg.Wrote != nil {
		s.cfg.Wrote(time.Since(begin))
	}
	return err
}
