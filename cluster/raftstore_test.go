package cluster

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// TestABrokenDiskIsNoPanic: the goroutine that cannot write a term, or read an entry,
// ends without a panic of the library once that runs; before, and for an entry that is
// not there, the error is returned.
func TestABrokenDiskIsNoPanic(t *testing.T) {
	for name, call := range map[string]func(*raftStore) error{
		"term":  func(s *raftStore) error { return s.SetUint64([]byte("CurrentTerm"), 7) },
		"entry": func(s *raftStore) error { return s.GetLog(7, new(raft.Log)) },
	} {
		broken := errors.New("input/output error")
		s := &raftStore{Store: failingStore{err: broken}}
		if err := call(s); !errors.Is(err, broken) {
			t.Errorf("%s, before the library runs: %v", name, err)
		}
		s.running.Store(true)
		returned, ended := false, make(chan struct{})
		go func() {
			defer close(ended)
			_ = call(s)
			returned = true
		}()
		if <-ended; returned {
			t.Errorf("%s: the library was told, and would panic", name)
		}
	}
	s := &raftStore{Store: failingStore{err: raft.ErrLogNotFound}}
	s.running.Store(true)
	if err := s.GetLog(7, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// failingStore is a Store on a broken disk.
type failingStore struct {
	Store
	err error
}

func (s failingStore) SetUint64([]byte, uint64) error { return s.err }

func (s failingStore) GetLog(uint64, *raft.Log) error { return s.err }
