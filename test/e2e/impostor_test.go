package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// keepsRefusing checks that a node without a quorum gets none while an impostor
// or a stranger runs: a whole second of calls is refused.
func keepsRefusing(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	load := harness.StartLoad(ledger, []*harness.Node{n}, "refused", 2, 10*time.Second)
	defer load.Stop()
	harness.Eventually(t, 10*time.Second, "refusals", func(context.Context) error {
		if n := len(load.Failures()); n < 300 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if n := load.OK.Load(); n > 0 {
		t.Errorf("%d identities with the help of a process that is no member", n)
	}
}

// undisturbed says, under load on all of the cluster's nodes, whether a call
// failed or an election was held while during ran. A machine that stood still may
// have caused either: see harness.Stalls.Judge.
func undisturbed(t *testing.T, c *harness.Cluster, ledger *harness.Ledger, during func()) error {
	t.Helper()
	term := view(t, c.Leader(t)).Term
	load := harness.StartLoad(ledger, c.Nodes, "orders", 4, 10*time.Second)
	defer load.Stop()
	settle(t, ledger)
	during()
	settle(t, ledger)
	load.Stop()
	return errors.Join(failures(load), sameTerm(t, c, term))
}

// withoutQuorum checks that a process serves nothing that needs a quorum, over
// some time; it may as well end by itself.
func withoutQuorum(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	load := harness.StartLoad(ledger, []*harness.Node{n}, "stolen", 2, 10*time.Second)
	defer load.Stop()
	harness.Eventually(t, 20*time.Second, "refusals", func(context.Context) error {
		if n := len(load.Failures()); n < 300 && load.OK.Load() == 0 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	load.Stop()
	if got := load.OK.Load(); got > 0 {
		t.Errorf("an impostor of %s gave %d identities", n.Tag, got)
	}
}

// etagBlock takes many server-side ids from n, which may be an impostor: then it
// may refuse them, or may have ended.
func etagBlock(t *testing.T, n *harness.Node) (first, last int64) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second) // longer than a start waits for the cluster
	harness.Eventually(t, 20*time.Second, "server-side ids, or none", func(ctx context.Context) error {
		r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 1_000_000, BlocksOnly: true})
		if err == nil {
			first, last = r.Blocks[0].First, r.Blocks[0].Last
		}
		if !n.Process.Running() || time.Now().After(deadline) {
			return nil
		}
		return err
	})
	return first, last
}

// noEtagTwice takes server-side ids from a member and its impostor by turns,
// beyond what is reserved for the node, on disk and by the cluster.
func noEtagTwice(t *testing.T, member, impostor *harness.Node) {
	t.Helper()
	stolenFirst, stolenLast := etagBlock(t, impostor)
	t.Logf("the impostor gave the etags %d to %d", stolenFirst, stolenLast)
	for range 4 {
		first, last := etagBlock(t, member)
		if first <= stolenLast && stolenFirst <= last {
			t.Errorf("node %s gave the etags %d to %d, and its impostor %d to %d", member.Tag, first, last, stolenFirst, stolenLast)
		}
	}
}

// TestCopiedDataDirectory starts a second process from a copy of a live
// member's data directory, at other addresses: the cluster goes on as if it
// were not there, and no id comes twice.
func TestCopiedDataDirectory(t *testing.T) {
	tier.Long(t)
	for _, variant := range []struct {
		of            string
		ownAdvertised bool
	}{
		{"follower", false},
		{"follower", true},
		{"leader", true},
	} {
		t.Run(fmt.Sprintf("of a %s, own address %t", variant.of, variant.ownAdvertised), func(t *testing.T) {
			harness.MeasureStalls(t).Judge(t, func() error {
				return copied(t, variant.of == "follower", variant.ownAdvertised)
			})
		})
	}
}

// copied runs an impostor from the copy of a new cluster's follower or leader, and
// says whether the cluster was undisturbed.
func copied(t *testing.T, follower, ownAdvertised bool) error {
	t.Helper()
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	original := c.Leader(t)
	if follower {
		original = c.Others(original)[0]
	}
	etags(t, original, ledger, 1000)
	impostor := original.Impostor(t, original.CopyData(t))
	c.WaitReady(t)
	disturbed := undisturbed(t, c, ledger, func() {
		var flags []string
		if ownAdvertised {
			flags = []string{"--advertise-grpc", impostor.GRPC}
		}
		impostor.Start(t, flags...)
		withoutQuorum(t, impostor, ledger)
		for _, n := range c.Nodes {
			take(t, n, ledger, "orders")
		}
		noEtagTwice(t, original, impostor)
	})
	ends(t, impostor, "another process with this node's id")
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
		etags(t, n, ledger, 10)
	}
	c.Agree(t)
	return disturbed
}

// TestWipedNodeMakesNoQuorum: a node that lost its data, at its old address,
// cannot stand in for the member it was.
func TestWipedNodeMakesNoQuorum(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	stays, away, lost := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	take(t, stays, ledger, "orders")
	etags(t, lost, ledger, 100)
	away.Process.Kill()
	lost.Process.Kill()
	if err := os.RemoveAll(lost.DataDir); err != nil {
		t.Fatal(err)
	}
	lost.Start(t)
	ends(t, lost, "cluster remove "+lost.Tag)
	keepsRefusing(t, stays, ledger)
	if s := view(t, stays); s.HasQuorum {
		t.Error("the node that is left says it has a quorum")
	}
	away.Start(t)
	c.WaitReady(t)
	for _, n := range []*harness.Node{stays, away} {
		take(t, n, ledger, "orders")
	}
	c.Agree(t)
}

// TestStrangerAtMembersAddress: a node of another cluster that got a member's
// addresses, and even its tag, is no member here.
func TestStrangerAtMembersAddress(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	stays, away, gone := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	take(t, stays, ledger, "orders")
	gone.Process.Kill()
	stranger := c.Stranger(t, gone.Tag, "--single-node")
	stranger.GRPC, stranger.Raft, stranger.HTTP, stranger.Client = gone.GRPC, gone.Raft, gone.HTTP, gone.Client
	stranger.Start(t)
	stranger.WaitReady(t)
	ctx, cancel := context.WithTimeout(context.Background(), changed)
	defer cancel()
	if r, err := stranger.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"}); err != nil || r.Blocks[0].First != 1 {
		t.Errorf("the other cluster's own first identity: %v %v", r, err)
	}
	for _, n := range []*harness.Node{stays, away} {
		take(t, n, ledger, "orders")
	}
	away.Process.Kill()
	keepsRefusing(t, stays, ledger)
	if s := view(t, stranger); len(s.Members) != 1 {
		t.Errorf("the other cluster has %d members", len(s.Members))
	}
	stranger.Process.Stop(t)
	away.Start(t)
	gone.Start(t)
	c.WaitReady(t)
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
	}
	c.Agree(t)
}

// TestForeignCertificate: a process with a certificate of the same CA that names
// another node is refused everywhere, even with a member's data and addresses.
func TestForeignCertificate(t *testing.T) {
	certs := certificates(t)
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	ledger := harness.NewLedger(t)
	stays, robbed := c.Nodes[0], c.Nodes[1]
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
	}
	robbed.Process.Kill()

	// It cannot say that it is B, because its certificate does not.
	thief := robbed.Impostor(t, robbed.DataDir)
	thief.Certify("X")
	thief.Start(t)
	ends(t, thief, "does not name node B")
	if code := thief.Process.Wait(t, changed); code != 2 {
		t.Errorf("exit code %d, want 2: a setting is wrong", code)
	}

	// It says that it is X, as its certificate does, but its data say B.
	thief = c.Stranger(t, "X", "--join", stays.GRPC)
	thief.GRPC, thief.Raft, thief.HTTP, thief.Client = robbed.GRPC, robbed.Raft, robbed.HTTP, robbed.Client
	thief.DataDir = robbed.DataDir
	thief.Start(t)
	ends(t, thief, "belongs to node B")

	// With its own certificate the node is welcome.
	robbed.Start(t)
	c.WaitReady(t)
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
		etags(t, n, ledger, 1)
	}
	c.Agree(t)
}

// startForeign starts a node with another cluster's directory in the place of a member
// that is down, and waits until it ends.
func startForeign(t *testing.T, c *harness.Cluster, member *harness.Node, dir string, ids []string) {
	t.Helper()
	c.LeaderAmong(t, c.Others(member))
	lost := *member
	lost.DataDir = dir
	lost.Start(t)
	if code := lost.Process.Wait(t, changed); code != 5 {
		t.Errorf("a node with another cluster's directory ended with %d, want 5", code)
	}
	last := lost.Process.Tail(1)
	for _, id := range ids {
		if !strings.Contains(last, id) {
			t.Errorf("the last line does not name the cluster %s:\n%s", id, last)
		}
	}
}

// TestAnotherClustersDirectory starts a node with another cluster's data directory in
// the place of a member: at its address, and with the list of its cluster. It ends
// with the code that asks for a person, and says which two clusters met. None of the
// member's callers gets an id from it.
func TestAnotherClustersDirectory(t *testing.T) {
	own := harness.StartCluster(t, harness.Config{Size: 1})
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	stranger, member := own.Nodes[0], c.Nodes[0]
	ids := []string{view(t, stranger).ClusterId, view(t, member).ClusterId}
	stranger.Process.Stop(t)
	member.Process.Stop(t)

	readies := func() int { return strings.Count(stranger.Process.Output(), "msg=ready") }
	harness.MeasureStalls(t).Judge(t, func() error {
		before := readies()
		startForeign(t, c, member, stranger.DataDir, ids)
		if readies() != before { // It asks the others first, for half a second.
			return errors.New("the node said that it was ready, in the place of another")
		}
		return nil
	})

	member.Start(t)
	c.WaitReady(t)
	take(t, member, ledger, "orders")
}
