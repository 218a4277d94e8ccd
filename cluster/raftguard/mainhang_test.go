package raftguard

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
)

// rpcs is a transport whose requests come from a channel.
type rpcs struct {
	*raft.InmemTransport
	raft.WithClose
	in chan raft.RPC
}

func (r rpcs) Consumer() <-chan raft.RPC { return r.in }

// TestMainGoroutineThatHangs: whatever Raft's state, its main goroutine counts as hanging once
// it has stood still for the limit, unless it applies entries or reads a snapshot; and no
// longer once it goes on.
func TestMainGoroutineThatHangs(t *testing.T) {
	self := raft.Server{ID: "a", Address: "a"}
	for state, servers := range map[raft.RaftState][]raft.Server{
		raft.Follower:  nil,
		raft.Candidate: {self, {ID: "b", Address: "b"}},
		raft.Leader:    {self},
	} {
		t.Run(state.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { hangMainGoroutine(t, state, servers) })
		})
	}
}

func hangMainGoroutine(t *testing.T, state raft.RaftState, servers []raft.Server) {
	config, store, snapshots := raft.DefaultConfig(), raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	config.LocalID, config.Logger = "a", hclog.New(&hclog.LoggerOptions{Output: io.Discard})
	_, inmem := raft.NewInmemTransport("a")
	trans := rpcs{InmemTransport: inmem, WithClose: inmem, in: make(chan raft.RPC)}
	if len(servers) > 0 {
		if err := raft.BootstrapCluster(config, store, store, snapshots, trans, raft.Configuration{Servers: servers}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := raft.NewRaft(config, &raft.MockFSM{}, store, store, snapshots, trans)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Shutdown().Error() }()
	var applied atomic.Uint64
	var installing atomic.Bool
	w := &MainWatch{Raft: r, Limit: 3 * time.Second, Progress: applied.Load, Installing: installing.Load}
	done := make(chan struct{})
	go func() {
		defer close(done)
		duty.New(slog.New(slog.DiscardHandler), duty.NewBeats(), w.Duty()).Run(t.Context(), func() bool { return true }, nil)
	}()

	for range 100 {
		time.Sleep(time.Second)
		if err := w.Err(); err != nil {
			t.Fatalf("a %s that does nothing: %v", r.State(), err)
		}
	}
	if r.State() != state && state != raft.Candidate || state == raft.Candidate && r.State() == raft.Leader {
		t.Fatalf("it is a %s", r.State())
	}
	// The library tells observers of each request for a vote, on its main goroutine.
	hangs := make(chan raft.Observation)
	r.RegisterObserver(raft.NewObserver(hangs, true, func(o *raft.Observation) bool {
		_, vote := o.Data.(raft.RequestVoteRequest)
		return vote
	}))
	trans.in <- raft.RPC{
		Command: &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax,
			ID:              []byte("x"), Addr: []byte("x"),
		}},
		RespChan: make(chan raft.RPCResponse, 1),
	}
	time.Sleep(w.Limit)
	if err := w.Err(); err != nil {
		t.Errorf("at once: %v", err)
	}
	time.Sleep(w.Limit / 2)
	if w.Err() == nil {
		t.Error("nothing is said of a main goroutine that hangs")
	}
	applied.Add(1)
	time.Sleep(w.Limit / 2)
	if err := w.Err(); err != nil {
		t.Errorf("it applies entries: %v", err)
	}
	installing.Store(true)
	time.Sleep(10 * w.Limit)
	if err := w.Err(); err != nil {
		t.Errorf("it reads a snapshot: %v", err)
	}
	installing.Store(false)
	time.Sleep(2 * w.Limit)
	if w.Err() == nil {
		t.Error("nothing is said of a main goroutine that hangs again")
	}
	<-hangs
	time.Sleep(w.Limit)
	if err := w.Err(); err != nil {
		t.Errorf("it goes on: %v", err)
	}
}
