package raftguard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// latency is how long a slowStore takes for a write, in virtual time.
const latency = time.Second

// slowStore is a store in memory that takes time to write, and fails once err is set.
type slowStore struct {
	*raft.InmemStore
	Store
	writes int
	err    error
}

func (s *slowStore) StoreLogs(logs []*raft.Log) error {
	time.Sleep(latency)
	s.writes++
	if s.err != nil {
		return s.err
	}
	return s.InmemStore.StoreLogs(logs)
}
func (s *slowStore) FirstIndex() (uint64, error)        { return s.InmemStore.FirstIndex() }
func (s *slowStore) LastIndex() (uint64, error)         { return s.InmemStore.LastIndex() }
func (s *slowStore) GetLog(i uint64, l *raft.Log) error { return s.InmemStore.GetLog(i, l) }
func (s *slowStore) StoreLog(l *raft.Log) error         { return s.StoreLogs([]*raft.Log{l}) }
func (s *slowStore) DeleteRange(from, to uint64) error  { return s.InmemStore.DeleteRange(from, to) }
func (s *slowStore) Set(key, value []byte) error        { return s.InmemStore.Set(key, value) }
func (s *slowStore) Get(key []byte) ([]byte, error)     { return s.InmemStore.Get(key) }
func (s *slowStore) SetUint64(key []byte, value uint64) error {
	return s.InmemStore.SetUint64(key, value)
}
func (s *slowStore) GetUint64(key []byte) (uint64, error) { return s.InmemStore.GetUint64(key) }

// leading runs a test with the store of a leader that needs another voter.
func leading(t *testing.T, test func(t *testing.T, disk *slowStore, s *RaftStore, failures *[]error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := &slowStore{InmemStore: raft.NewInmemStore()}
		failures := &[]error{}
		s := NewRaftStore(disk, RaftStoreConfig{
			Committed: func() uint64 { return 0 }, Fatal: func(err error) { t.Error(err) }, Needed: nobody,
			Writing: func(uint64) {}, EnterTerm: enterTerm,
			Replicates: func() bool { return true }, WriteFailed: func(err error) { *failures = append(*failures, err) },
		})
		s.Started()
		test(t, disk, s, failures)
	})
}

// put has entries of term 1 be stored, and returns how long that took.
func put(t *testing.T, s *RaftStore, kind raft.LogType, indexes ...uint64) time.Duration {
	t.Helper()
	begin := time.Now()
	for _, index := range indexes {
		if err := s.StoreLogs([]*raft.Log{{Index: index, Term: 1, Type: kind}}); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// TestALeadersEntriesAreReadableWhileTheyAreWritten: thesis 10.2.1. Those that wait meanwhile
// are written with one sync.
func TestALeadersEntriesAreReadableWhileTheyAreWritten(t *testing.T) {
	leading(t, func(t *testing.T, disk *slowStore, s *RaftStore, _ *[]error) {
		begin := time.Now()
		took := put(t, s, raft.LogCommand, 1)
		synctest.Wait()
		if took += put(t, s, raft.LogCommand, 2, 3); took > 0 {
			t.Errorf("three entries took %s", took)
		}
		first, _ := s.FirstIndex()
		last, _ := s.LastIndex()
		var log raft.Log
		if err := s.GetLog(2, &log); err != nil || log.Index != 2 || first != 1 || last != 3 {
			t.Errorf("entry 2 is %+v, %v, the log is %d to %d", log, err, first, last)
		}
		if err := s.GetLog(4, &log); !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("entry 4: %v", err)
		}
		if err := s.AwaitStable(t.Context(), 3); err != nil || time.Since(begin) != 2*latency {
			t.Errorf("entry 3 is on disk after %s: %v", time.Since(begin), err)
		}
		if onDisk, _ := disk.LastIndex(); onDisk != 3 || disk.writes != 2 {
			t.Errorf("the disk has %d entries after %d writes, want 3 after 2", onDisk, disk.writes)
		}
		if err := s.GetLog(2, &log); err != nil || log.Index != 2 {
			t.Errorf("entry 2 is %+v, %v on disk", log, err)
		}
	})
}

// TestNothingElseIsWrittenBeforeTheEntries: not the next term, so that a former leader answers
// nothing in it by entries that its disk lacks; and no configuration, by which the library
// counts at once.
func TestNothingElseIsWrittenBeforeTheEntries(t *testing.T) {
	for name, tt := range map[string]struct {
		call func(t *testing.T, s *RaftStore)
		// takes is how long the call takes: the entry's write, and its own.
		takes time.Duration
	}{
		"the term": {func(t *testing.T, s *RaftStore) {
			if err := s.SetUint64([]byte(keyTerm), 2); err != nil {
				t.Error(err)
			}
		}, latency},
		"a configuration": {func(t *testing.T, s *RaftStore) { put(t, s, raft.LogConfiguration, 2) }, 2 * latency},
		"entries of another leader": {func(t *testing.T, s *RaftStore) {
			s.cfg.Replicates = func() bool { return false }
			put(t, s, raft.LogCommand, 2)
		}, 2 * latency},
		"a deletion": {func(t *testing.T, s *RaftStore) {
			if err := s.DeleteRange(1, 1); err != nil {
				t.Error(err)
			}
		}, latency},
	} {
		t.Run(name, func(t *testing.T) {
			leading(t, func(t *testing.T, _ *slowStore, s *RaftStore, _ *[]error) {
				put(t, s, raft.LogCommand, 1)
				begin := time.Now()
				tt.call(t, s)
				if took := time.Since(begin); took != tt.takes {
					t.Errorf("it took %s, want %s", took, tt.takes)
				}
			})
		})
	}
}

// TestAFailedWriteIsNeverStable: whoever waits for the disk gets the error, and so does all that
// follows.
func TestAFailedWriteIsNeverStable(t *testing.T) {
	leading(t, func(t *testing.T, disk *slowStore, s *RaftStore, failures *[]error) {
		disk.err = errors.New("input/output error")
		put(t, s, raft.LogCommand, 1, 2)
		for range 2 { // The write has not ended, and has.
			if err := s.AwaitStable(t.Context(), 2); !errors.Is(err, disk.err) {
				t.Errorf("entry 2 is stable: %v", err)
			}
		}
		synctest.Wait()
		if err := s.StoreLogs([]*raft.Log{{Index: 3, Term: 1}}); !errors.Is(err, disk.err) || len(*failures) != 1 {
			t.Errorf("the next entry: %v; %d failures are told", err, len(*failures))
		}
	})
}

// TestAWaitForTheDiskEnds with its context.
func TestAWaitForTheDiskEnds(t *testing.T) {
	leading(t, func(t *testing.T, _ *slowStore, s *RaftStore, _ *[]error) {
		put(t, s, raft.LogCommand, 1)
		ctx, cancel := context.WithTimeout(t.Context(), latency/2)
		defer cancel()
		if err := s.AwaitStable(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
