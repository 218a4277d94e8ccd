package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestProposeFromEveryNode(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	want := int64(0)
	for range 3 {
		for _, s := range n.servers {
			want++
			if got := s.mustNext("users"); got != want {
				t.Errorf("%s gave %d, want %d", s.tag, got, want)
			}
		}
	}
	n.agree()
	for _, s := range n.servers {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := s.node.Linearize(ctx); err != nil {
			t.Errorf("%s: Linearize: %v", s.tag, err)
		}
		cancel()
		if c, _ := s.state.Identity("default", "users"); c.Last != want {
			t.Errorf("%s: after Linearize the last value is %d, want %d", s.tag, c.Last, want)
		}
	}
}

// TestProposeBeforeAndAfter says why nothing is taken.
func TestProposeBeforeAndAfter(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 1)
	s := n.servers[0]
	s.open(nil)
	_, err := s.next(t.Context(), "users")
	wantOutcome(t, err, outcome.NotApplied, outcome.Starting)
	s.start()
	s.mustNext("users")
	node := s.node
	s.stop(false)
	_, err = node.Propose(t.Context(), []byte{1})
	wantOutcome(t, err, outcome.NotApplied, outcome.Stopping)
	select {
	case <-node.Done():
	default:
		t.Error("Done is not closed")
	}
	if node.Err() != nil {
		t.Errorf("Err: %v after an orderly end", node.Err())
	}
}

// TestNodeMoves brings a follower back at other addresses: it tells the others.
func TestNodeMoves(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	s := n.others(n.leader())[0]
	s.eventuallyNext("users")
	s.stop(true)
	s.grpc, s.raft = freeport.For(t), freeport.For(t)
	s.open(func(c *cluster.Config) { c.PeerList = n.peers })
	s.start()
	s.eventuallyNext("users")
	eventually(t, "new address", func() bool {
		for _, m := range n.leader().state.Members() {
			if m.GetTag() == s.tag {
				return m.GetRaftAddress() == s.raft && m.GetGrpcAddress() == s.grpc
			}
		}
		return false
	})
	n.agree()
}

// TestNodesThatMovedApart: the leader has moved while another node was down, which moves
// as well. Each has the other's old address; the others have both.
func TestNodesThatMovedApart(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 5)
	leader, other := n.servers[0], n.servers[1]
	other.eventuallyNext("users")
	other.stop(false)
	leader.stop(false)
	for _, s := range []*server{leader, other} {
		s.grpc, s.raft = freeport.For(t), freeport.For(t)
		n.run(s)
		s.eventuallyNext("users")
		n.leads(leader)
	}
	n.agree()
}

func (s *server) hasSnapshot() bool {
	entries, err := os.ReadDir(filepath.Join(s.dir, "snapshots"))
	return err == nil && len(entries) > 0
}

// TestSnapshotForNewcomer lets a node in after the log it would need is gone.
func TestSnapshotForNewcomer(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 1)
	small := func(c *cluster.Config) {
		c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = 20, 5, 100*time.Millisecond
	}
	a := n.servers[0]
	a.open(small)
	a.start()
	for range 60 {
		a.mustNext("users")
	}
	eventually(t, "snapshot", a.hasSnapshot)
	b := newServer(t, "")
	b.open(func(c *cluster.Config) { c.Join = []string{a.grpc} })
	n.servers = append(n.servers, b)
	b.start()
	b.tag = "B"
	if v := b.mustNext("users"); v != 61 {
		t.Errorf("the newcomer gave %d, want 61", v)
	}
	n.agree()
	a.stop(true)
	a.open(small)
	a.start()
	if v, failed := a.eventuallyNext("users"); v < 62 || v > 62+failed {
		t.Errorf("after the restart came %d, want 62; %d tries failed", v, failed)
	}
}

// TestANodeJoinsTheClusterOfItsSettings, and no other, of which it becomes no member.
func TestANodeJoinsTheClusterOfItsSettings(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 1)
	a := n.servers[0]
	own, b := fmt.Sprintf("%x", a.node.ClusterID()), newServer(t, "B")
	for _, id := range []string{strings.Repeat("0", 32), own} { // With the same data directory.
		b.open(func(c *cluster.Config) { c.Join, c.ClusterID = []string{a.grpc}, id })
		if err := b.tryStart(); errors.Is(err, member.ErrOtherCluster) != (id != own) {
			t.Errorf("with the id %s: %v", id, err)
		}
		if members := a.state.Members(); (len(members) == 2) != (id == own) {
			t.Errorf("with the id %s the members are %v", id, members)
		}
		b.stop(true)
	}
}

// TestANodeThatIsNotWhereItSaysIsNotAdded: no member ever dials the addresses.
func TestANodeThatIsNotWhereItSaysIsNotAdded(t *testing.T) {
	t.Parallel()
	a := startNetwork(t, 1).servers[0]
	for _, address := range []string{a.grpc, freeport.For(t)} {
		newcomer := &raftlogv1.Member{Id: bytes.Repeat([]byte{7}, 16), Tag: "B", GrpcAddress: address, RaftAddress: freeport.For(t)}
		_, err := peerSide{a.node.PeerSide()}.HandleJoin(t.Context(), &peerv1.JoinRequest{Member: newcomer})
		if outcome.Of(err) != outcome.NotApplied || !strings.Contains(err.Error(), address) {
			t.Errorf("at %s: %v", address, err)
		}
	}
	if members := a.node.Members(); len(members) != 1 {
		t.Errorf("the members are %v", members)
	}
}

// TestSnapshotByVolume takes a snapshot after a few entries that are large
// together.
func TestSnapshotByVolume(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 1)
	a := n.servers[0]
	a.open(func(c *cluster.Config) {
		c.SnapshotThreshold, c.SnapshotInterval, c.SnapshotBytes = 1<<30, time.Hour, 1<<10
	})
	a.start()
	for range 60 {
		a.mustNext("users")
	}
	eventually(t, "snapshot", a.hasSnapshot)
}

// TestStorageFull refuses before anything is written.
func TestStorageFull(t *testing.T) {
	t.Parallel()
	enough := disk.Room{Bytes: 1 << 30, Files: 1000, AllFiles: 1000}
	for name, full := range map[string]disk.Room{
		"bytes":  {Bytes: 1, Files: 1000, AllFiles: 1000},
		"inodes": {Bytes: 1 << 30, Files: 1, AllFiles: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			a := newNetwork(t, 1).servers[0]
			var room atomic.Pointer[disk.Room]
			room.Store(&enough)
			a.open(func(c *cluster.Config) { c.Room = func() (disk.Room, error) { return *room.Load(), nil } })
			a.start()
			a.mustNext("users")
			room.Store(&full)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var err error
			eventually(t, "refusal", func() bool {
				_, err = a.next(ctx, "users")
				return err != nil
			})
			wantOutcome(t, err, outcome.NotApplied, outcome.StorageFull)
			room.Store(&enough)
			eventually(t, "recovery", func() bool {
				_, err := a.next(ctx, "users")
				return err == nil
			})
		})
	}
}

// TestAFullLeaderTransfersLeadership: a leader without room refuses the calls of all, so it
// must not lead while another has room, nor be a transfer target.
func TestAFullLeaderTransfersLeadership(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 3)
	full := map[*server]*atomic.Bool{}
	for _, s := range n.servers {
		full[s] = &atomic.Bool{}
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			c.Room = func() (disk.Room, error) {
				if full[s].Load() {
					return disk.Room{Bytes: 1}, nil
				}
				return disk.Room{Bytes: 1 << 30}, nil
			}
		})
	}
	startAll(n.servers...)
	first := n.leader()
	first.mustNext("users")
	full[first].Store(true)
	eventually(t, "a leader with room", func() bool { return n.leader() != first })
	for _, s := range n.servers {
		s.mustNext("users")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	eventually(t, "refusal to transfer leadership to the full node", func() bool {
		_, err := n.leader().node.Transfer(ctx, first.tag)
		var refused *op.RefusedError
		return errors.As(err, &refused)
	})
	if got := first.transferLeadership(""); got == first.tag {
		t.Errorf("leadership went to %q, want a node with room", got)
	}
}

// TestWipedNode empties a data directory: the node must not come back under its
// tag, and the others go on.
func TestWipedNode(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	n.servers[0].mustNext("users")
	s := n.server("C")
	s.stop(true)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.open(func(c *cluster.Config) { c.PeerList = n.peers })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.node.Start(ctx); !errors.Is(err, member.ErrTagTaken) {
		t.Errorf("Start: %v, want %v", err, member.ErrTagTaken)
	}
	n.server("A").mustNext("users")
}

// TestIncompleteDirectory removes one file of two.
func TestIncompleteDirectory(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"raft.db", member.FileName} {
		t.Run(file, func(t *testing.T) {
			n := startNetwork(t, 1)
			s := n.servers[0]
			s.stop(true)
			if err := os.Remove(filepath.Join(s.dir, file)); err != nil {
				t.Fatal(err)
			}
			_, err := cluster.Open(cluster.Config{
				DataDir: s.dir, Tag: "A", RaftListen: s.raft, Advertise: cluster.Addresses{GRPC: s.grpc, Raft: s.raft},
				StateMachine: s.state, TakeSnapshot: func() cluster.Snapshot { return s.state.Snapshot() }, Registry: s.state, Peers: s.pool,
			})
			if !errors.Is(err, member.ErrMismatch) {
				t.Errorf("Open: %v, want %v", err, member.ErrMismatch)
			}
		})
	}
}

// TestJoinAndRemove lets a fourth node in, waits for its vote, and removes the
// leader.
func TestJoinAndRemove(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	n.servers[0].mustNext("users")
	d := newServer(t, "")
	d.open(func(c *cluster.Config) { c.Join = []string{n.servers[1].grpc} })
	d.start()
	d.tag = "D"
	n.servers = append(n.servers, d)
	if tag, _ := d.node.Tag(); tag != "D" {
		t.Errorf("the newcomer's tag is %q, want D", tag)
	}
	eventually(t, "vote for the newcomer", func() bool { return votes(d, "D") })
	d.mustNext("users")

	leader := n.leader()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := d.node.RemoveMember(ctx, leader.tag, false, nil); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	select {
	case <-leader.node.Done():
		if err := leader.node.Err(); !errors.Is(err, member.ErrRemoved) {
			t.Errorf("the removed node ended with %v, want %v", err, member.ErrRemoved)
		}
	case <-ctx.Done():
		t.Error("the removed node does not end")
	}
	leader.stop(true)
	for _, s := range n.others(leader) {
		s.mustNext("users")
	}
	_, err := cluster.Open(cluster.Config{
		DataDir: leader.dir, RaftListen: leader.raft, Advertise: cluster.Addresses{GRPC: leader.grpc, Raft: leader.raft},
		StateMachine: leader.state, TakeSnapshot: func() cluster.Snapshot { return leader.state.Snapshot() },
		Registry: leader.state, Peers: leader.pool, Logger: slog.New(slog.DiscardHandler),
	})
	if !errors.Is(err, member.ErrRemoved) {
		t.Errorf("Open of the removed node's directory: %v, want %v", err, member.ErrRemoved)
	}
}

// votes reports whether a member votes, as a node sees it.
func votes(s *server, tag string) bool {
	return slices.ContainsFunc(s.node.Status().Members, func(m cluster.MemberStatus) bool {
		return m.Member.GetTag() == tag && m.Votes
	})
}

// TestLastVoterStays refuses to remove the only voter.
func TestLastVoterStays(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := n.servers[0].node.RemoveMember(ctx, "A", false, nil)
	var refused *op.RefusedError
	if !errors.As(err, &refused) || refused.Refusal.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER {
		t.Errorf("Remove: %v, want a refusal", err)
	}
}
