package matrix

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// snapshotOften makes nodes take snapshots after a few entries, and keep so few
// that a node which missed some needs a snapshot.
var snapshotOften = failpoint.Tuning{SnapshotThreshold: 20, SnapshotInterval: time.Second, TrailingLogs: 4}

// TestF20SnapshotUnderLoad lets a follower miss more entries than the log keeps,
// again and again, while the leader is killed as it sends the snapshot; then an
// empty node joins. All have the same state in the end.
func TestF20SnapshotUnderLoad(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{Tuning: snapshotOften}, deadline)
	for i := range r.cycles(t, 3, 100) {
		leader := r.c.Leader(t)
		behind := r.c.Others(leader)[i%2]
		behind.Process.Kill()
		r.traffic.Thick(t)
		behind.Start(t)
		if i%3 == 2 {
			leader.Process.Kill()
			leader.Start(t)
		}
		r.c.WaitReady(t)
		r.traffic.Thick(t)
	}
	names := manyNames(t, r.c.Nodes)
	n := r.c.Add(t, "", "--join", r.c.Nodes[0].GRPC)
	begin := time.Now()
	n.Start(t)
	n.Settled(t)
	took := time.Since(begin)
	t.Logf("an empty node took %s to join a cluster with %d names", took, names)
	if took > 30*time.Second {
		t.Errorf("an empty node took %s to join", took)
	}
	r.traffic.Joined(n, 4)
	r.ends(t)
}

// manyNames takes a value of each of many identities, a million in a full run, and
// returns how many they are.
func manyNames(t *testing.T, nodes []*harness.Node) int {
	t.Helper()
	const batch = 500
	names := map[string]int{"full": 1_000_000, "medium": 200_000}[form()]
	names = max(names, 10_000)
	harness.StreamLoad{
		Nodes: nodes, Streams: 1, Batch: batch, InFlight: 2, Messages: names / batch,
		Call: func(i int) *idnodev1.Call { return harness.CallIdentity(fmt.Sprintf("name-%07d", i)) },
	}.Complete(t)
	return names
}

// TestF21MembersChange adds a node and removes one, the leader every other time,
// again and again under traffic: no outage is longer than 3 s.
func TestF21MembersChange(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 3, 100) {
		r.traffic.Thick(t)
		r.Outage()
		leader := r.c.LeaderAmong(t, r.c.Nodes)
		n := r.c.Add(t, "", "--join", leader.GRPC)
		n.Start(t)
		n.Settled(t)
		r.traffic.Joined(n, 2)
		gone := leader
		if i%2 == 1 {
			gone = otherThan(r.c, leader, n)
		}
		removed(t, n, gone)
		r.c.LeaderAmong(t, r.c.Nodes)
		r.traffic.Thick(t)
		if outage := r.Outage(); outage > within(3*time.Second) {
			t.Errorf("nothing was answered for %s while %s joined and %s was removed", outage, n.Tag, gone.Tag)
		}
	}
	r.ends(t)
}

// otherThan is a running node that is none of these.
func otherThan(c *harness.Cluster, nodes ...*harness.Node) *harness.Node {
	i := slices.IndexFunc(c.Nodes, func(n *harness.Node) bool { return n.Process.Running() && !slices.Contains(nodes, n) })
	return c.Nodes[i]
}

// removed removes a node, asking n, and waits until it has ended.
func removed(t *testing.T, n, gone *harness.Node) {
	t.Helper()
	if err := removes(n, gone); err != nil {
		t.Fatalf("removing %s through node %s: %v", gone.Tag, n.Tag, err)
	}
	if code := gone.Process.Wait(t, 20*time.Second); code == 0 {
		t.Errorf("the removed node %s ended with exit code 0", gone.Tag)
	}
}

// TestF33VoterRemovedLeaderFrozen removes one of four voters, and stops the leader's process before
// Raft's configuration has followed: the other two elect the next one, with the removed one's vote.
func TestF33VoterRemovedLeaderFrozen(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, silent)
	for range r.cycles(t, 2, 100) {
		gone := r.c.Add(t, "", "--join", r.c.Leader(t).GRPC)
		gone.Start(t)
		gone.Settled(t)
		r.traffic.Joined(gone, 2)
		leader := r.votes(t, gone)
		others := slices.DeleteFunc(r.c.Others(leader), func(n *harness.Node) bool { return n == gone || !n.Process.Running() })
		r.traffic.Thick(t)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			removes(others[0], gone)
		}()
		awaitRemoval(t, others[1], gone)
		leader.Process.Signal(t, syscall.SIGSTOP)
		r.failsOver(t, others[1])
		r.traffic.Thick(t)
		leader.Process.Signal(t, syscall.SIGCONT)
		<-asked
		harness.Eventually(t, 20*time.Second, "the removed node has ended", func(context.Context) error {
			if !gone.Process.Running() {
				return nil
			}
			return removes(others[0], gone)
		})
		endedAfter(t, gone, "removed from the cluster")
		r.wakes(t, leader)
	}
	r.inTime(t, 2*time.Second, 5*time.Second, 10*time.Second)
	r.ends(t)
}

// awaitRemoval waits until n has applied the removal of a node, no longer.
func awaitRemoval(t *testing.T, n, gone *harness.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	is := func(m *idnodev1.Member) bool { return m.GetTag() == gone.Tag }
	for {
		s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.GetMembers(), is) {
			return
		}
	}
}

// votes waits until a node that joined votes, and another one leads. It returns the leader.
func (r *row) votes(t *testing.T, joined *harness.Node) (leader *harness.Node) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, joined.Tag+" votes", func(ctx context.Context) error {
		if leader = r.c.Leader(t); leader == joined {
			return transfer(joined, otherThan(r.c, joined))
		}
		s, err := leader.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		for _, m := range s.GetMembers() {
			if m.GetTag() == joined.Tag && m.GetRole() == idnodev1.Role_ROLE_FOLLOWER {
				return err
			}
		}
		return fmt.Errorf("it does not yet: %w", err)
	})
	return leader
}

// removes asks n to remove a node.
func removes(n, gone *harness.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	_, err := n.Cluster.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: gone.Tag})
	return err
}
