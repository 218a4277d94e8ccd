package fsm

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/raftlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReadsAndSnapshotsBesideApply is for the race detector, and checks that no
// reader ever sees an identity go back.
func TestReadsAndSnapshotsBesideApply(t *testing.T) {
	l := richLog(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() { readUntil(t, l.state, stop) })
	}
	session := l.announce("A")
	var writers sync.WaitGroup
	for i := range 400 {
		l.apply(raftlog.Group{
			Origin: nodeNamed("node A"), Session: session, Sequence: uint64(i + 1),
			Acknowledged: uint64(i), Operations: [][]byte{
				encodeOperation(keyed(opNext("users", 1), key(2000+i, 1))),
				encodeOperation(opClaimID("users/" + itoa(int64(3*i+5)))),
				encodeOperation(opDelete(benchName(i%7), false)),
				encodeOperation(opRaiseEtags("A", map[string]uint64{"x": uint64(i)})),
				announceOperation(testMember("B")),
			},
		})
		if i%50 == 0 {
			snapshot := l.state.Snapshot()
			writers.Go(func() { checkSnapshot(t, snapshot) })
		}
		if i == 200 {
			if err := l.state.Restore(bytes.NewReader(snapshotOf(t, l.state))); err != nil {
				t.Error(err)
			}
		}
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if _, hash := l.state.Hash(); hash != hashFromScratch(l.state.contents) {
		t.Fatal("wrong hash")
	}
}

// checkSnapshot writes a snapshot while the state changes, and restores it, which compares its
// hash.
func checkSnapshot(t *testing.T, snapshot *Snapshot) {
	defer snapshot.Close()
	r, w := io.Pipe()
	go func() {
		_, err := snapshot.WriteTo(w)
		_ = w.CloseWithError(err)
	}()
	if err := New(Config{}).Restore(r); err != nil {
		t.Error(err)
	}
}

// readUntil reads everything there is to read.
func readUntil(t *testing.T, s *State, stop <-chan struct{}) {
	last := int64(0)
	for {
		select {
		case <-stop:
			return
		default:
		}
		c, _ := s.Identity("db", "users")
		if c.Last < last {
			t.Errorf("users went back from %d to %d", last, c.Last)
			return
		}
		last = c.Last
		s.Identities("db", "", "", 10)
		s.HiLo("db", benchName(1))
		s.HiLos("db", "", "", 10)
		s.Claims("db", "users/5", "", 1)
		s.Claims("db", "users", "", 10)
		s.Settings()
		s.Counts()
		s.Members()
		s.Etags(nodeNamed("node A"))
		s.ClusterID()
		s.Databases()
		s.Format()
		s.Hash()
		s.AppliedIndex()
	}
}
