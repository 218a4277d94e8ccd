package raftguard

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// nothing is a state machine without a state.
type nothing struct{}

func (nothing) Apply(*raft.Log) any                 { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }
func (nothing) Restore(content io.ReadCloser) error { return content.Close() }

// follower is one node of the Raft library, to which the test is the leader.
type follower struct {
	t      *testing.T
	leader *raft.InmemTransport
}

func newFollower(t *testing.T, s Store) *follower {
	t.Helper()
	address, network := raft.NewInmemTransport("follower")
	_, leader := raft.NewInmemTransport("leader")
	leader.Connect(address, network)
	config := raft.DefaultConfig()
	config.LocalID, config.LogOutput = "follower", io.Discard
	r, err := raft.NewRaft(config, nothing{}, s, s, s.Snapshots(), network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown().Error(); err != nil {
			t.Error(err)
		}
	})
	return &follower{t, leader}
}

var fromLeader = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("leader"), Addr: []byte("leader")}

// entries sends entries from first to last, all of one term, and reports whether they
// were taken.
func (f *follower) entries(term, previousTerm, first, last uint64) bool {
	f.t.Helper()
	req := &raft.AppendEntriesRequest{RPCHeader: fromLeader, Term: term, PrevLogEntry: first - 1, PrevLogTerm: previousTerm}
	for i := first; i <= last; i++ {
		req.Entries = append(req.Entries, &raft.Log{Index: i, Term: term, Type: raft.LogNoop})
	}
	var resp raft.AppendEntriesResponse
	if err := f.leader.AppendEntries("follower", "follower", req, &resp); err != nil {
		f.t.Fatal(err)
	}
	return resp.Success
}

// snapshot installs a snapshot. The library names it by term, index and millisecond, and a
// name is taken once, so it comes in a millisecond of its own.
func (f *follower) snapshot(term, index uint64) {
	f.t.Helper()
	for before := time.Now().UnixMilli(); time.Now().UnixMilli() == before; {
		runtime.Gosched()
	}
	servers := []raft.Server{{ID: "leader", Address: "leader"}}
	req := &raft.InstallSnapshotRequest{
		RPCHeader: fromLeader, SnapshotVersion: raft.SnapshotVersionMax, Term: term, LastLogIndex: index, LastLogTerm: term, Size: 1,
		Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: servers}), ConfigurationIndex: 1,
	}
	var resp raft.InstallSnapshotResponse
	err := f.leader.InstallSnapshot("follower", "follower", req, &resp, bytes.NewReader([]byte{0}))
	if err != nil || !resp.Success {
		f.t.Fatal("the snapshot was not installed:", err)
	}
}

// TestEntriesAfterAnInstalledSnapshot pins what the library does by itself: as
// soon as that is right, BoundaryStore can go.
func TestEntriesAfterAnInstalledSnapshot(t *testing.T) {
	tests := map[string]struct {
		// before happens first, on either kind of store.
		before func(f *follower)
		// alone reports whether the library takes what comes next by itself.
		alone bool
	}{
		"an empty log": {func(*follower) {}, true},
		"the answer to the first entries was lost": {func(f *follower) {
			f.snapshot(2, 10)
			f.entries(2, 2, 11, 12)
		}, false},
		"a log that ends before the snapshot, and the answer was lost": {func(f *follower) {
			f.entries(1, 0, 1, 4)
			f.snapshot(2, 10)
			f.entries(2, 2, 11, 12)
		}, false},
		"a log that leads to the snapshot": {func(f *follower) {
			f.entries(2, 0, 1, 12)
		}, true},
		"another entry where the snapshot ends": {func(f *follower) {
			f.entries(1, 0, 1, 12)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bare := openTestStore(t)
			bounded, err := NewBoundaryStore(openTestStore(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []Store{bare, bounded} {
				f := newFollower(t, s)
				tt.before(f)
				f.snapshot(2, 10)
				want := tt.alone || s == bounded
				if got := f.entries(2, 2, 11, 13); got != want {
					t.Errorf("on %T: entries taken: %v, want %v", s, got, want)
				}
			}
		})
	}
}

// TestALogThatDoesNotLeadToItsSnapshot: what is left of it after a crash goes when
// the store is opened, and all that follows the snapshot stays.
func TestALogThatDoesNotLeadToItsSnapshot(t *testing.T) {
	tests := map[string]struct {
		log []uint64 // the entries' terms, from index 1
		// first and last bound the log afterwards; the snapshot ends at 3 of term 2.
		first, last uint64
	}{
		"it leads there":             {[]uint64{1, 2, 2, 2}, 1, 4},
		"it ends before":             {[]uint64{1, 1}, 0, 0},
		"it has another entry there": {[]uint64{1, 1, 1}, 0, 0},
		"and more":                   {[]uint64{1, 1, 1, 1, 1}, 4, 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := openTestStore(t)
			for i, term := range tt.log {
				if err := s.StoreLog(&raft.Log{Index: uint64(i + 1), Term: term}); err != nil {
					t.Fatal(err)
				}
			}
			sink, err := s.Snapshots().Create(raft.SnapshotVersionMax, 3, 2, raft.Configuration{}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			a, err := NewBoundaryStore(s)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := a.FirstIndex()
			last, _ := a.LastIndex()
			if first != tt.first || last != tt.last {
				t.Errorf("the log has %d to %d, want %d to %d", first, last, tt.first, tt.last)
			}
			var log raft.Log
			if err := a.GetLog(3, &log); err != nil || log.Index != 3 || log.Term != 2 {
				t.Errorf("entry 3: %+v, %v", log, err)
			}
		})
	}
}

// TestASurvivorTakesOverTheSnapshotOfAnother: each of two recovered nodes begins with
// a snapshot of its own, and the one that leads may have the lower index and the
// higher term.
func TestASurvivorTakesOverTheSnapshotOfAnother(t *testing.T) {
	for _, index := range []uint64{98, 100, 101} {
		own := openTestStore(t)
		sink, err := own.Snapshots().Create(raft.SnapshotVersionMax, 100, 4, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := NewBoundaryStore(own)
		if err != nil {
			t.Fatal(err)
		}
		f := newFollower(t, s)
		f.snapshot(5, index)
		if !f.entries(6, 5, index+1, index+3) || !f.entries(6, 6, index+4, index+4) {
			t.Errorf("entries after a snapshot that ends at %d of term 5 were not taken", index)
		}
		if s.beyond(boundary{index, 5}) || !s.beyond(boundary{100, 4}) {
			t.Errorf("the boundary is %v", *s.at.Load())
		}
	}
}

// TestTheEntryThatASnapshotEndsWithStays, also when a newer one is the boundary: a follower may
// be getting the older one.
func TestTheEntryThatASnapshotEndsWithStays(t *testing.T) {
	s, err := NewBoundaryStore(openTestStore(t))
	if err != nil {
		t.Fatal(err)
	}
	write := func(first, last uint64) {
		t.Helper()
		for i := first; i <= last; i++ {
			if err := s.StoreLog(&raft.Log{Index: i, Term: 3}); err != nil {
				t.Fatal(err)
			}
		}
	}
	snapshot := func(index uint64) {
		t.Helper()
		sink, err := s.Snapshots().Create(raft.SnapshotVersionMax, index, 3, raft.Configuration{}, 1, nil)
		if err == nil {
			err = sink.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begins := func(want uint64) {
		t.Helper()
		if first, err := s.FirstIndex(); err != nil || first != want {
			t.Errorf("the log begins at %d, %v, want %d", first, err, want)
		}
	}
	write(1, 20)
	snapshot(10)
	needed := func() uint64 {
		end, _ := s.Boundary()
		return end
	}
	library := NewRaftStore(s, RaftStoreConfig{Committed: func() uint64 { return 18 }, Needed: needed, Writing: func(uint64) {}})
	for _, first := range []uint64{1, 10} {
		if err := library.DeleteRange(first, 10); err != nil {
			t.Fatal(err)
		}
		begins(10)
	}
	snapshot(18)
	var log raft.Log
	if err := s.GetLog(10, &log); err != nil || log.Term != 3 {
		t.Errorf("entry 10: %+v, %v", log, err)
	}
	if err := library.DeleteRange(10, 15); err != nil {
		t.Fatal(err)
	}
	begins(16)
	if err := library.DeleteRange(19, 20); err != nil { // The end, which another leader replaces.
		t.Fatal(err)
	}
	if last, err := s.LastIndex(); err != nil || last != 18 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	if err := s.DeleteRange(16, 18); err != nil { // All of it, as a recovery does, for which there is no library.
		t.Fatal(err)
	}
	begins(0)
}

// TestACancelledSnapshotMovesNoBoundary: nothing of the log may go for its sake.
func TestACancelledSnapshotMovesNoBoundary(t *testing.T) {
	a, err := NewBoundaryStore(openTestStore(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.StoreLog(&raft.Log{Index: 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	sink, err := a.Snapshots().Create(raft.SnapshotVersionMax, 3, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	_ = sink.Close() // Some callers close what they cancelled; whatever it says.
	if first, err := a.FirstIndex(); err != nil || first != 1 {
		t.Errorf("the log begins at %d, %v", first, err)
	}
}

// slowSink is a sink beside whose closing something else happens.
type slowSink struct {
	raft.SnapshotSink
	meanwhile func() error
}

func (s slowSink) Close() error { return errors.Join(s.meanwhile(), s.SnapshotSink.Close()) }

// TestASnapshotOvertakenByAnotherIsNotTaken: a node writes its own snapshot while a
// newer one is installed, before the own one is closed or while it is.
func TestASnapshotOvertakenByAnotherIsNotTaken(t *testing.T) {
	t.Run("before", func(t *testing.T) { overtake(t, false) })
	t.Run("while it is closed", func(t *testing.T) { overtake(t, true) })
}

func overtake(t *testing.T, late bool) {
	s, err := NewBoundaryStore(openTestStore(t))
	if err != nil {
		t.Fatal(err)
	}
	create := func(index uint64) (raft.SnapshotSink, error) {
		return s.Snapshots().Create(raft.SnapshotVersionMax, index, 2, raft.Configuration{}, 1, nil)
	}
	own, err := create(7)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := create(9)
	if err != nil {
		t.Fatal(err)
	}
	if late {
		sink := own.(*boundarySink)
		sink.SnapshotSink = slowSink{sink.SnapshotSink, installed.Close}
	} else if err := installed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); !errors.Is(err, errOlderSnapshot) {
		t.Errorf("the end of the older one: %v", err)
	}
	if _, err := create(8); !errors.Is(err, errOlderSnapshot) {
		t.Errorf("another older one: %v", err)
	}
	if metas, err := s.Snapshots().List(); err != nil || len(metas) != 1 || metas[0].Index != 9 {
		t.Errorf("the snapshots are %v, %v", metas, err)
	}
}
