package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// changed bounds a change of the membership in a test.
const changed = 20 * time.Second

// snapshotOften makes nodes take snapshots after a few entries, and keep so
// few entries that a node which missed some needs a snapshot.
var snapshotOften = failpoint.Tuning{SnapshotThreshold: 8, SnapshotInterval: time.Second, TrailingLogs: 4}

// roleOf is what n says that the member with this tag does.
func roleOf(ctx context.Context, n *harness.Node, tag string) (idnodev1.Role, error) {
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(s.Members, func(m *idnodev1.Member) bool { return m.Tag == tag })
	if i < 0 {
		return 0, fmt.Errorf("node %s knows no member %s", n.Tag, tag)
	}
	return s.Members[i].Role, nil
}

// awaitRole waits until n says that the member with this tag has the role.
func awaitRole(t *testing.T, n *harness.Node, tag string, want idnodev1.Role) {
	t.Helper()
	harness.Eventually(t, changed, fmt.Sprintf("%s is %s at node %s", tag, want, n.Tag), func(ctx context.Context) error {
		role, err := roleOf(ctx, n, tag)
		if err == nil && role != want {
			err = fmt.Errorf("it is %s", role)
		}
		return err
	})
}

// awaitVote waits until n says that the member with this tag votes. One that votes may
// win the next election.
func awaitVote(t *testing.T, n *harness.Node, tag string) {
	t.Helper()
	harness.Eventually(t, changed, fmt.Sprintf("%s votes, says node %s", tag, n.Tag), func(ctx context.Context) error {
		role, err := roleOf(ctx, n, tag)
		if err == nil && role != idnodev1.Role_ROLE_FOLLOWER && role != idnodev1.Role_ROLE_LEADER {
			err = fmt.Errorf("it is %s", role)
		}
		return err
	})
}

// letLead transfers leadership to n, asking a member, until all say that n leads. One
// slow sync makes a transfer fail, and another leader may be elected under it: it
// takes an election timeout for each half. Whether transfers work is judged by
// TestF22LeadershipTransferred.
func letLead(t *testing.T, c *harness.Cluster, asked, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, changed, "node "+n.Tag+" leads", func(context.Context) error {
		if c.Leader(t) == n {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), changed)
		defer cancel()
		r, err := asked.Cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: n.Tag})
		if err != nil {
			return fmt.Errorf("transferring leadership through node %s: %w", asked.Tag, err)
		}
		return fmt.Errorf("leadership went to node %s", r.LeaderTag) // the next look decides
	})
}

// remove removes the member with this tag, asking n.
func remove(t *testing.T, n *harness.Node, tag string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), changed)
	defer cancel()
	if _, err := n.Cluster.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: tag}); err != nil {
		t.Fatalf("removing %s through node %s: %v", tag, n.Tag, err)
	}
}

// ends checks that the node's process ends by itself, with a failure, in words
// that contain text.
func ends(t *testing.T, n *harness.Node, text string) {
	t.Helper()
	if code := n.Process.Wait(t, changed); code == 0 {
		t.Errorf("node %s ended with exit code 0", n.Tag)
	}
	if last := n.Process.Tail(1); !strings.HasPrefix(last, "idnode: ") || !strings.Contains(last, text) {
		t.Errorf("the last line of node %s does not say %q:\n%s", n.Tag, text, n.Process.Tail(5))
	}
}

// failures is an error for each call of the load that failed, or nil.
func failures(load *harness.Load) error {
	var all error
	for _, a := range load.Failures() {
		all = errors.Join(all, fmt.Errorf("a call on node %s failed after %s: %w", a.Node.Tag, a.Return.Sub(a.Call), a.Err))
	}
	return all
}

// noFailures checks that no call of the load failed.
func noFailures(t *testing.T, load *harness.Load) {
	t.Helper()
	if err := failures(load); err != nil {
		t.Error(err)
	}
}

// TestJoin lets a fourth node join through a follower, under load: it gets the
// next tag, and votes only once it has caught up.
func TestJoin(t *testing.T) {
	t.Parallel()
	harness.MeasureStalls(t).Judge(t, func() error { return joined(t) })
}

// joined lets a node join a new cluster, and says whether a call failed meanwhile.
func joined(t *testing.T) error {
	t.Helper()
	c := harness.StartCluster(t, harness.Config{Tuning: snapshotOften})
	ledger := harness.NewLedger(t)
	load := harness.StartLoad(ledger, c.Nodes, "orders", 4, 10*time.Second)
	defer load.Stop()
	settle(t, ledger)
	leader := c.Leader(t)

	// The way from the members to the newcomer's Raft port is cut: it is a
	// member, but gets no entry.
	d := c.Add(t, "", "--join", c.Others(leader)[0].GRPC)
	relay, err := edge.Listen(d.Raft)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	relay.Set(edge.Cut)
	d.Start(t, "--advertise-raft", relay.Addr())
	awaitRole(t, leader, "D", idnodev1.Role_ROLE_JOINING)
	settle(t, ledger)
	if role, err := roleOf(t.Context(), leader, "D"); role != idnodev1.Role_ROLE_JOINING {
		t.Errorf("a newcomer without an entry is %s (%v), want to be joining", role, err)
	}

	relay.Set(edge.None)
	d.Settled(t)
	if d.Tag != "D" {
		t.Fatalf("the fourth node got the tag %s, want D", d.Tag)
	}
	for _, n := range c.Others(leader) {
		awaitVote(t, n, "D")
	}
	take(t, d, ledger, "orders")
	if first := etags(t, d, ledger, 5); first != 1 {
		t.Errorf("the first etag of D is %d", first)
	}

	// Only a voter can lead.
	letLead(t, c, c.Others(leader)[0], d)
	settle(t, ledger)
	load.Stop()
	explained(t, ledger, load)
	c.Agree(t)

	// It finds its place again without being told, and keeps its tag.
	d.Process.Stop(t)
	d.Start(t, "--advertise-raft", relay.Addr())
	d.Settled(t)
	if next := etags(t, d, ledger, 1); d.Tag != "D" || next != 6 {
		t.Errorf("after a planned restart: tag %s, etag %d, want D and 6", d.Tag, next)
	}
	c.Agree(t)
	return failures(load)
}

// TestWatcher: a watcher forwards and gives server-side ids, but does not vote.
func TestWatcher(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	w := c.Add(t, "", "--join", c.Nodes[2].GRPC, "--watcher")
	w.Start(t)
	w.Settled(t)
	for _, n := range c.Nodes {
		awaitRole(t, n, w.Tag, idnodev1.Role_ROLE_WATCHER)
	}
	take(t, w, ledger, "orders")
	etags(t, w, ledger, 5)
	ctx, cancel := context.WithTimeout(context.Background(), changed)
	defer cancel()
	_, err := w.Cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: w.Tag})
	told := slices.Contains(harness.Fields(err), "tag") && strings.Contains(err.Error(), "does not vote")
	if status.Code(err) != codes.InvalidArgument || !told {
		t.Errorf("transferring leadership to a watcher: %v", err)
	}

	// Two of the three voters gone, the watcher must not make up a majority.
	gone := c.Nodes[:2]
	for _, n := range gone {
		n.Process.Kill()
	}
	cut := time.Now()
	stalls := harness.MeasureStalls(t)
	refuses(t, w, stalls, cut)
	refuses(t, c.Nodes[2], stalls, cut)
	stillGives(t, w, ledger)
	if role, err := roleOf(ctx, w, w.Tag); role != idnodev1.Role_ROLE_WATCHER {
		t.Errorf("the watcher is %s (%v)", role, err)
	}
	for _, n := range gone {
		n.Start(t)
	}
	c.WaitReady(t)
	take(t, w, ledger, "orders")
	c.Agree(t)
}

// TestRemove: a removed node ends by itself and says why, also when it is
// started again, and its tag is never given again.
func TestRemove(t *testing.T) {
	var c *harness.Cluster
	var ledger *harness.Ledger
	var leader, gone, stays *harness.Node
	harness.MeasureStalls(t).Judge(t, func() error {
		c, ledger = harness.StartCluster(t, harness.Config{}), harness.NewLedger(t)
		leader = c.Leader(t)
		gone, stays = c.Others(leader)[0], c.Others(leader)[1]
		etags(t, gone, ledger, 5)
		load := harness.StartLoad(ledger, []*harness.Node{leader, stays}, "orders", 4, 10*time.Second)
		defer load.Stop()
		settle(t, ledger)
		remove(t, stays, gone.Tag)
		ends(t, gone, "removed from the cluster")
		settle(t, ledger)
		load.Stop()
		return failures(load)
	})
	remove(t, leader, gone.Tag) // again: it is out, and that is what was asked for

	gone.Start(t)
	ends(t, gone, "removed from the cluster")

	asks := c.Stranger(t, gone.Tag, "--join", stays.GRPC)
	asks.Start(t)
	ends(t, asks, "belongs to another")

	next := c.Add(t, "", "--join", stays.GRPC)
	next.Start(t)
	next.Settled(t)
	if next.Tag != "D" {
		t.Errorf("after %s was removed, the next node got the tag %s, want D", gone.Tag, next.Tag)
	}
	take(t, next, ledger, "orders")
	ctx, cancel := context.WithTimeout(context.Background(), changed)
	defer cancel()
	all, err := next.Cluster.ListMembers(ctx, &idnodev1.ListMembersRequest{IncludeRemoved: true})
	if err != nil || !slices.ContainsFunc(all.Members, func(m *idnodev1.Member) bool {
		return m.Tag == gone.Tag && m.Role == idnodev1.Role_ROLE_REMOVED
	}) {
		t.Errorf("the removed member is not listed as such: %v %v", all, err)
	}
	c.Agree(t)
}

// TestPromoteAndDemote: a watcher gets a vote and a leader loses its own under load, without a call that fails. What the
// log says of a node outlasts its settings.
func TestPromoteAndDemote(t *testing.T) {
	tier.Long(t)
	harness.MeasureStalls(t).Judge(t, func() error { return promotedAndDemoted(t) })
}

func promotedAndDemoted(t *testing.T) error {
	t.Helper()
	c := harness.StartCluster(t, harness.Config{})
	founders := slices.Clone(c.Nodes)
	ledger := harness.NewLedger(t)
	w := c.Add(t, "", "--join", c.Nodes[2].GRPC, "--watcher")
	w.Start(t)
	w.Settled(t)
	load := harness.StartLoad(ledger, founders, "orders", 4, 10*time.Second)
	defer load.Stop()
	settle(t, ledger)
	set := func(tag string, watcher bool) error {
		ctx, cancel := context.WithTimeout(t.Context(), changed)
		defer cancel()
		_, err := w.Cluster.SetWatcher(ctx, &idnodev1.SetWatcherRequest{Tag: tag, Watcher: proto.Bool(watcher)})
		return err
	}
	if err := set(w.Tag, false); err != nil {
		t.Fatal(err)
	}
	awaitVote(t, c.Nodes[0], w.Tag)
	led := c.LeaderAmong(t, founders)
	if err := set(led.Tag, true); err != nil {
		t.Fatal(err)
	}
	for _, n := range founders {
		awaitRole(t, n, led.Tag, idnodev1.Role_ROLE_WATCHER)
	}
	settle(t, ledger)
	load.Stop()
	explained(t, ledger, load)
	c.Agree(t)

	// The watcher that votes makes up a majority of three, and starts again as what it is.
	w.Process.Stop(t)
	w.Start(t)
	w.Settled(t)
	led.Process.Kill()
	others := slices.DeleteFunc(founders, func(n *harness.Node) bool { return n == led })
	others[0].Process.Kill()
	take(t, w, ledger, "orders")
	if err := set(others[1].Tag, true); harness.Reason(err) != "LOSES_QUORUM" {
		t.Errorf("demoting one of two voters that answer: %v", err)
	}
	others[0].Start(t)
	led.Start(t)
	c.WaitReady(t)
	if role, err := roleOf(t.Context(), w, led.Tag); role != idnodev1.Role_ROLE_WATCHER {
		t.Errorf("after a start %s is %s (%v)", led.Tag, role, err)
	}
	c.Agree(t)
	return failures(load)
}
