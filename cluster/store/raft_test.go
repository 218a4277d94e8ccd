package store

import (
	"encoding/binary"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftlogger"
)

// sum is a state machine whose state is the sum of what it applied.
type sum struct{ total uint64 }

func (s *sum) Apply(log *raft.Log) any {
	s.total += binary.BigEndian.Uint64(log.Data)
	return s.total
}

func (s *sum) Snapshot() (raft.FSMSnapshot, error) { return sumSnapshot(s.total), nil }

func (s *sum) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(r)
	if err == nil {
		s.total = binary.BigEndian.Uint64(b)
	}
	return err
}

type sumSnapshot uint64

func (s sumSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(binary.BigEndian.AppendUint64(nil, uint64(s))); err != nil {
		return err
	}
	return sink.Close()
}

func (sumSnapshot) Release() {}

func startRaft(t *testing.T, id string, s *Store, transport raft.Transport) (*raft.Raft, *sum) {
	t.Helper()
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = raft.ServerID(id), raftlogger.New(slog.New(slog.DiscardHandler))
	c.TrailingLogs = 2
	fsm := &sum{}
	r, err := raft.NewRaft(c, fsm, s, s, s.Snapshots(), transport)
	must(t, err)
	return r, fsm
}

// TestRaftOnTheStore has a node apply, snapshot, restart, and bring in a new node
// that can only be reached by sending the snapshot.
func TestRaftOnTheStore(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	_, first := raft.NewInmemTransport("a")
	r, _ := startRaft(t, "a", s, first)
	must(t, r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}).Error())
	awaitLeader(t, r)
	for i := range uint64(50) {
		must(t, r.Apply(binary.BigEndian.AppendUint64(nil, i), time.Minute).Error())
	}
	must(t, r.Snapshot().Error())
	must(t, r.Shutdown().Error())
	mustClose(t, s)

	s = mustOpen(t, cfg)
	_, again := raft.NewInmemTransport("a")
	r, fsm := startRaft(t, "a", s, again)
	awaitLeader(t, r)
	must(t, r.Apply(binary.BigEndian.AppendUint64(nil, 1), time.Minute).Error())
	must(t, r.Barrier(time.Minute).Error())

	cfgB := testConfig(t.TempDir(), newFatals())
	cfgB.NodeID = "b"
	b := mustOpen(t, cfgB)
	_, transportB := raft.NewInmemTransport("b")
	again.Connect("b", transportB)
	transportB.Connect("a", again)
	rb, fsmB := startRaft(t, "b", b, transportB)
	must(t, r.AddVoter("b", "b", 0, time.Minute).Error())
	for deadline := time.Now().Add(time.Minute); rb.AppliedIndex() < r.AppliedIndex(); {
		if time.Now().After(deadline) {
			t.Fatal("the new node does not catch up")
		}
		time.Sleep(5 * time.Millisecond)
	}
	must(t, rb.Shutdown().Error())
	must(t, r.Shutdown().Error())
	if want := uint64(49*50/2 + 1); fsm.total != want || fsmB.total != want {
		t.Errorf("sums are %d and %d, want %d", fsm.total, fsmB.total, want)
	}
	// The hole that the installed snapshot left is no damage.
	mustClose(t, b)
	mustClose(t, mustOpen(t, cfgB))
}

func awaitLeader(t *testing.T, r *raft.Raft) {
	t.Helper()
	deadline := time.After(time.Minute)
	for r.State() != raft.Leader {
		select {
		case <-r.LeaderCh():
		case <-deadline:
			t.Fatal("no leader")
		}
	}
}
