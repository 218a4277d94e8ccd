package raftguard

import (
	"errors"
	"math"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
)

func enterTerm(uint64) (entered func()) { return func() {} }

// TestABrokenDiskIsNoPanic: the goroutine that cannot write a term, or read an entry,
// ends without a panic of the library once that runs; before, and for an entry that is
// not there, the error is returned.
func TestABrokenDiskIsNoPanic(t *testing.T) {
	for name, call := range map[string]func(*RaftStore) error{
		"term":  func(s *RaftStore) error { return s.SetUint64([]byte("CurrentTerm"), 7) },
		"entry": func(s *RaftStore) error { return s.GetLog(7, new(raft.Log)) },
	} {
		broken := errors.New("input/output error")
		s := &RaftStore{Store: failingStore{err: broken}, cfg: RaftStoreConfig{EnterTerm: enterTerm}}
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
	s := &RaftStore{Store: failingStore{err: raft.ErrLogNotFound}}
	s.running.Store(true)
	if err := s.GetLog(7, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// TestCommittedEntriesAreNotDeleted: the end of the log is deleted only above what is
// known to be committed; its beginning, when there is a snapshot, as always.
func TestCommittedEntriesAreNotDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		first, last uint64
		proof       bool
	}{
		"end above the commit index":       {8, 10, false},
		"end at the commit index":          {7, 10, true},
		"end below the commit index":       {3, 10, true},
		"all of it":                        {1, 10, true},
		"beginning below the commit index": {1, 5, false},
	} {
		var fatal error
		s := &RaftStore{
			Store: openTestStore(t),
			cfg: RaftStoreConfig{
				Committed: func() uint64 { return 7 }, Fatal: func(err error) { fatal = err }, Needed: nobody,
				Writing: func(uint64) {}, EnterTerm: enterTerm,
			},
		}
		for i := uint64(1); i <= 10; i++ {
			if err := s.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
				t.Fatal(err)
			}
		}
		err := s.DeleteRange(tt.first, tt.last)
		if proof := errors.Is(err, member.ErrTakenBack) && errors.Is(fatal, member.ErrTakenBack); proof != tt.proof {
			t.Errorf("%s: %v, and the node ends with %v", name, err, fatal)
		}
		if err := s.GetLog(tt.last, new(raft.Log)); (err == nil) != tt.proof {
			t.Errorf("%s: reading entry %d: %v", name, tt.last, err)
		}
	}
}

// TestALogThatIsAllCommittedIsKept: a snapshot and a new leader may both have all of the
// log deleted. Only the leader's entries follow at the same indexes.
func TestALogThatIsAllCommittedIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		next  uint64
		proof bool
	}{
		"a snapshot has it":             {11, false},
		"the leader has another end":    {10, true},
		"the leader has another log":    {3, true},
		"an entry before the beginning": {1, true},
	} {
		var fatal error
		s := &RaftStore{
			Store: openTestStore(t),
			cfg: RaftStoreConfig{
				Committed: func() uint64 { return 10 }, Fatal: func(err error) { fatal = err }, Needed: nobody,
				Writing: func(uint64) {}, EnterTerm: enterTerm,
			},
		}
		for i := uint64(1); i <= 10; i++ {
			if err := s.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.DeleteRange(1, 2); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteRange(3, 10); err != nil || fatal != nil {
			t.Fatalf("%s: %v, and the node ends with %v", name, err, fatal)
		}
		err := s.StoreLogs([]*raft.Log{{Index: tt.next, Term: 2}})
		if proof := errors.Is(err, member.ErrTakenBack) && errors.Is(fatal, member.ErrTakenBack); proof != tt.proof || !proof && err != nil {
			t.Errorf("%s: %v, and the node ends with %v", name, err, fatal)
		}
		var log raft.Log
		if err := s.GetLog(10, &log); err != nil || log.Term != 1 {
			t.Errorf("%s: entry 10: %+v, %v", name, log, err)
		}
		if err := s.DeleteRange(3, 7); err != nil {
			t.Errorf("%s: the next snapshot: %v", name, err)
		}
	}
}

// TestALeaderWithoutCommittedEntriesEndsTheNode: what the library does when its log
// must not be truncated. It took the leader's entries, and applied others at the same
// indexes before.
func TestALeaderWithoutCommittedEntriesEndsTheNode(t *testing.T) {
	var fatal error
	s := &RaftStore{
		Store: openTestStore(t),
		cfg: RaftStoreConfig{
			Committed: func() uint64 { return 4 }, Fatal: func(err error) { fatal = err }, Needed: nobody,
			Writing: func(uint64) {}, EnterTerm: enterTerm,
		},
	}
	f := newFollower(t, s)
	if !f.entries(1, 0, 1, 6) || !f.entries(2, 1, 6, 7) || fatal != nil {
		t.Fatal("entries above the commit index were not replaced:", fatal)
	}
	if f.entries(3, 1, 4, 8) || !errors.Is(fatal, member.ErrTakenBack) {
		t.Error("committed entries were replaced:", fatal)
	}
	var log raft.Log
	if err := s.GetLog(7, &log); err != nil || log.Term != 2 {
		t.Errorf("entry 7: %+v, %v", log, err)
	}
}

// nobody needs an entry.
func nobody() uint64 { return math.MaxUint64 }

// TestEntriesThatAFollowerNeedsAreKept: a snapshot deletes those before, and none that it
// would have kept.
func TestEntriesThatAFollowerNeedsAreKept(t *testing.T) {
	for _, tt := range []struct{ needed, last, first uint64 }{
		{6, 8, 6}, {6, 5, 6}, {6, 3, 4}, {1, 8, 1}, {0, 8, 1}, {math.MaxUint64, 8, 9},
	} {
		s := NewRaftStore(openTestStore(t), RaftStoreConfig{
			Committed: func() uint64 { return 10 }, Needed: func() uint64 { return tt.needed }, Writing: func(uint64) {}, EnterTerm: enterTerm,
		})
		for i := uint64(1); i <= 10; i++ {
			if err := s.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.DeleteRange(1, tt.last); err != nil {
			t.Fatal(err)
		}
		if first, err := s.FirstIndex(); first != tt.first || err != nil {
			t.Errorf("entry %d is needed, and those up to %d go: the first is %d, %v, want %d", tt.needed, tt.last, first, err, tt.first)
		}
	}
}

// failingStore is a Store on a broken disk.
type failingStore struct {
	Store
	err error
}

func (s failingStore) SetUint64([]byte, uint64) error { return s.err }

func (s failingStore) GetLog(uint64, *raft.Log) error { return s.err }
