package apply

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
)

// keyTerm is where the library keeps its term.
const keyTerm = "CurrentTerm"

// RaftStore is the node's store for the running Raft library (v1.7.3). The library panics
// if it cannot write a term, or read an entry to apply: the process would end with a
// stack trace, and with the exit code of a wrong command line. A store that fails has
// ended the node already. So the calling goroutine ends here, with its deferred calls,
// and the node shuts down in order.
type RaftStore struct {
	Store
	// running is set when the library runs: before that its calls come from the
	// goroutine that starts the node, and errors are returned.
	running atomic.Bool
	// committed returns the newest index that this node knows to be committed, and
	// fatal ends the node.
	committed func() uint64
	fatal     func(error)
	// needed returns the first entry that a follower needs which catches up: the newest
	// snapshot's last one, or one before it.
	needed func() uint64
	// writing is called with the term of the newest entry before entries are written, and
	// with 0 after.
	writing func(term uint64)
	// enterTerm is called before a newer term is written, and what it returns after that.
	// term is the current one.
	enterTerm func(term uint64) (entered func())
	term      uint64
	// configured is no index before the newest entry with a configuration.
	configured atomic.Uint64
	// kept is the end of the log when all of it was to be deleted: see DeleteRange.
	kept atomic.Uint64
}

// NewRaftStore returns s for a library that does not run yet.
func NewRaftStore(s Store, committed func() uint64, fatal func(error), needed func() uint64, writing func(term uint64), enterTerm func(term uint64) (entered func())) *RaftStore {
	term, _ := s.GetUint64([]byte(keyTerm)) // The library, which needs it, reports the error.
	r := &RaftStore{Store: s, committed: committed, fatal: fatal, needed: needed, writing: writing, enterTerm: enterTerm, term: term}
	last, _ := s.LastIndex() // The library reports the error.
	r.configured.Store(last)
	return r
}

// Configured returns the index of the newest entry with a configuration. After a start it may
// be another one, and is none before it.
func (s *RaftStore) Configured() uint64 { return s.configured.Load() }

// Started says that the library runs.
func (s *RaftStore) Started() { s.running.Store(true) }

// exitOnError ends the goroutine if the library would panic because of err.
func (s *RaftStore) exitOnError(err error) error {
	if err != nil && s.running.Load() {
		runtime.Goexit()
	}
	return err
}

// SetUint64 implements raft.StableStore.
func (s *RaftStore) SetUint64(key []byte, value uint64) error {
	if string(key) == keyTerm && value != s.term {
		s.term = value
		defer s.enterTerm(value)()
	}
	return s.exitOnError(s.Store.SetUint64(key, value))
}

// GetLog implements raft.LogStore.
func (s *RaftStore) GetLog(index uint64, log *raft.Log) error {
	err := s.Store.GetLog(index, log)
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	return s.exitOnError(err)
}

// DeleteRange implements raft.LogStore. The library deletes the beginning of the log when
// it has a snapshot, and keeps the newest entries; here those stay too that a follower needs
// which catches up. It deletes the end of the log when the
// leader has other entries there, without a check whether they are applied.
//
// The two may coincide: while the goroutine of snapshots computes what to keep, the main
// one replaces the end. Then all of the log is to be deleted, and all of it is committed.
// It is kept until an append tells which it was; to keep what a snapshot has harms nobody.
func (s *RaftStore) DeleteRange(first, last uint64) error {
	begin, err := s.FirstIndex()
	if err != nil {
		return err
	}
	end, err := s.LastIndex()
	if err != nil {
		return err
	}
	if first == begin && last < end {
		last = min(last, max(s.needed(), 1)-1)
	}
	switch committed := s.committed(); {
	case last < first:
		return nil
	case end == 0 || last < end || first > committed:
		return s.Store.DeleteRange(first, last)
	case first == begin && last <= committed:
		s.kept.Store(last)
		return nil
	default:
		return s.takenBack(first, last, committed)
	}
}

// StoreLog implements raft.LogStore.
func (s *RaftStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (s *RaftStore) StoreLogs(logs []*raft.Log) error {
	if kept := s.kept.Load(); len(logs) > 0 && logs[0].Index <= kept {
		return s.takenBack(logs[0].Index, kept, s.committed())
	}
	if len(logs) > 0 {
		s.writing(logs[len(logs)-1].Term)
		defer s.writing(0)
	}
	for _, log := range logs {
		if log.Type == raft.LogConfiguration {
			s.configured.Store(log.Index)
		}
	}
	return s.Store.StoreLogs(logs)
}

// takenBack ends the node: the leader has other entries than those that are committed.
func (s *RaftStore) takenBack(first, last, committed uint64) error {
	err := fmt.Errorf("%w: entries %d to %d were to be deleted, and %d is committed", member.ErrTakenBack, first, last, committed)
	s.fatal(err)
	return err
}
