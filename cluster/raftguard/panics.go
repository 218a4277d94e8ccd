package raftguard

import (
	"errors"
	"runtime"

	"github.com/hashicorp/raft"
)

// exitOnError ends the goroutine if the library would panic because of err. The library
// panics if it cannot write a term, or read an entry to apply: the process would end with a
// stack trace, and with the exit code of a wrong command line. A store that fails has
// ended the node already. So the calling goroutine ends here, with its deferred calls,
// and the node shuts down in order.
func (s *RaftStore) exitOnError(err error) error {
	if err != nil && s.running.Load() {
		runtime.Goexit()
	}
	return err
}

func (s *RaftStore) GetLog(index uint64, log *raft.Log) error {
	if s.unstable.get(index, log) {
		return nil
	}
	err := s.Store.GetLog(index, log)
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	return s.exitOnError(err)
}
