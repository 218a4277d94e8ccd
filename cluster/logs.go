package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// serialLogs lets one change of the log happen at a time. Raft appends on its
// main goroutine and compacts on the one that takes snapshots, so both can be
// under way together; a store that keeps account of what it holds must not see
// one while it is in the middle of the other. It costs nothing: bbolt writes one
// transaction at a time anyway. Reads are not held up.
type serialLogs struct {
	raft.LogStore
	changing sync.Mutex
}

// StoreLog implements raft.LogStore.
func (s *serialLogs) StoreLog(log *raft.Log) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.LogStore.StoreLog(log)
}

// StoreLogs implements raft.LogStore.
func (s *serialLogs) StoreLogs(logs []*raft.Log) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.LogStore.StoreLogs(logs)
}

// DeleteRange implements raft.LogStore.
func (s *serialLogs) DeleteRange(first, last uint64) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.LogStore.DeleteRange(first, last)
}
