package cluster

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// raftStore is the node's store as the Raft library (v1.7.3) has it once it runs. The
// library panics where it cannot write a term, or read an entry that it shall apply:
// the process would end with a stack in place of words, and with the exit code of a
// wrong command line. A store that fails has ended the node already. So the goroutine
// that finds out ends here, with all that it deferred, and the node ends in its own
// way.
type raftStore struct {
	Store
	// running is set when the library runs: before that its calls come from the
	// goroutine that starts the node, and errors are returned.
	running atomic.Bool
}

// survive ends the goroutine if the library would panic because of err.
func (s *raftStore) survive(err error) error {
	if err != nil && s.running.Load() {
		runtime.Goexit()
	}
	return err
}

// SetUint64 implements raft.StableStore.
func (s *raftStore) SetUint64(key []byte, value uint64) error {
	return s.survive(s.Store.SetUint64(key, value))
}

// GetLog implements raft.LogStore.
func (s *raftStore) GetLog(index uint64, log *raft.Log) error {
	err := s.Store.GetLog(index, log)
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	return s.survive(err)
}
