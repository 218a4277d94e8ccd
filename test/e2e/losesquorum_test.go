package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// idnode runs a command of the program against nodes and returns what it prints.
func idnode(t *testing.T, nodes []*harness.Node, args ...string) (string, error) {
	t.Helper()
	for _, n := range nodes {
		args = append(args, "--endpoint", n.GRPC)
	}
	out, err := harness.Command(t, append(args, "--timeout", "20s")...).CombinedOutput()
	return string(out), err
}

// refusedWith waits until a command is refused with a reason, whose line names what
// stands in the way. Between two leaders it is refused with NO_QUORUM.
func refusedWith(t *testing.T, asked *harness.Node, reason, name string, args ...string) {
	t.Helper()
	harness.Eventually(t, changed, strings.Join(args, " ")+" is refused with "+reason, func(context.Context) error {
		out, err := idnode(t, []*harness.Node{asked}, args...)
		switch {
		case err == nil:
			t.Fatalf("%s through node %s was done: %s", strings.Join(args, " "), asked.Tag, out)
		case !strings.HasPrefix(out, "idnode: "+reason+": ") || !strings.Contains(out, name):
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// TestARemovalThatLosesTheQuorumIsRefused: with one of three nodes down, an operator
// an operator that names a living one by mistake, through any node, keeps the cluster. The
// lost one can be removed; and a living one by force, which stops the cluster until
// the other is back.
func TestARemovalThatLosesTheQuorumIsRefused(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	lost := c.Others(c.Leader(t))[0]
	lost.Process.Kill()
	living := c.Others(lost)
	for _, asked := range living {
		refusedWith(t, asked, "LOSES_QUORUM", "do not: "+lost.Tag, "cluster", "remove", c.Leader(t).Tag, "--yes")
		refusedWith(t, asked, "MEMBER_UNREACHABLE", "member "+lost.Tag, "cluster", "transfer", lost.Tag)
	}
	for _, n := range living {
		if !n.Process.Running() {
			t.Fatalf("node %s has ended:\n%s", n.Tag, n.Process.Tail(3))
		}
		take(t, n, ledger, "orders")
	}

	// A fourth node makes up for the lost one.
	d := c.Add(t, "", "--join", living[0].GRPC)
	d.Start(t)
	d.Settled(t)
	awaitVote(t, living[0], d.Tag)
	remove(t, d, lost.Tag)
	take(t, d, ledger, "orders")

	// Of three again, one is down.
	d.Process.Kill()
	gone, last := living[0], living[1]
	refusedWith(t, last, "LOSES_QUORUM", "do not: "+d.Tag, "cluster", "remove", gone.Tag, "--yes")
	harness.Eventually(t, changed, "the removal by force", func(ctx context.Context) error {
		out, err := idnode(t, []*harness.Node{last}, "cluster", "remove", gone.Tag, "--yes", "--force")
		// Once it has taken effect, a try whose answer was lost is not done again:
		// there is no quorum any more.
		if err != nil && isMember(ctx, last, gone.Tag) {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	harness.Eventually(t, changed, "node "+last.Tag+" alone has no quorum", func(ctx context.Context) error {
		if s, err := last.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{}); err != nil || s.GetHasQuorum() {
			return fmt.Errorf("it has one, or does not say: %v", err)
		}
		return nil
	})
	d.Start(t)
	d.WaitReady(t)
	take(t, last, ledger, "orders")
	// Its vote counts until the configuration without it is committed, which needed the other.
	ends(t, gone, "removed from the cluster")
	c.Agree(t)
}

// isMember reports whether a node knows a member with a tag, by its own state alone.
func isMember(ctx context.Context, n *harness.Node, tag string) bool {
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	return err != nil || slices.ContainsFunc(s.GetMembers(), func(m *idnodev1.Member) bool { return m.GetTag() == tag })
}
