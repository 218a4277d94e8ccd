package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

const (
	// underWay bounds how long a call that was under way when its node was cut
	// off may take to end.
	underWay = 600 * time.Millisecond
	// leaderWait is the default time a new call waits for a leader.
	leaderWait = 2 * time.Second
	// slack is what a busy machine may add to a bound that is not measured.
	slack = 500 * time.Millisecond
	// atOnce bounds a refusal that waits for nothing.
	atOnce = 200 * time.Millisecond
)

// TestPartition cuts off the leader, then a follower, then everyone from
// everyone, with callers on every node all the time.
func TestPartition(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	stalls := harness.MeasureStalls(t)
	load := harness.StartLoad(ledger, c.Nodes, "orders", 8, 10*time.Second)
	defer load.Stop()

	leader := c.Leader(t)
	isolate(t, c, ledger, load, stalls, leader)
	isolate(t, c, ledger, load, stalls, c.Others(c.Leader(t))[0])

	before := settle(t, ledger)
	cut := time.Now()
	c.CutAll()
	for _, n := range c.Nodes {
		refuses(t, n, stalls, cut)
		stillGives(t, n, ledger)
	}
	noSuccessAfter(t, ledger, load)
	c.Heal()
	healed(t, c, ledger, before)
	load.Stop()
	c.Agree(t)
	explained(t, ledger, load)
}

// isolate cuts n off, checks both sides, and heals.
func isolate(t *testing.T, c *harness.Cluster, ledger *harness.Ledger, load *harness.Load, stalls *harness.Stalls, n *harness.Node) {
	t.Helper()
	before := settle(t, ledger)
	cut := time.Now()
	c.Isolate(n)
	majority := c.Others(n)
	c.LeaderAmong(t, majority)
	refuses(t, n, stalls, cut)
	stillGives(t, n, ledger)
	endedInTime(t, load, stalls, n, cut)
	harness.Eventually(t, 5*time.Second, "the majority goes on", func(context.Context) error {
		if now := ledger.Count("orders"); now <= before+100 {
			return fmt.Errorf("%d ids since the cut", now-before)
		}
		return nil
	})
	before = ledger.Count("orders")
	c.Heal()
	healed(t, c, ledger, before)
}

// settle waits until ids come and returns how many there are.
func settle(t *testing.T, ledger *harness.Ledger) int64 {
	t.Helper()
	start := ledger.Count("orders")
	harness.Eventually(t, 10*time.Second, "ids come", func(context.Context) error {
		if ledger.Count("orders") < start+200 {
			return fmt.Errorf("%d", ledger.Count("orders")-start)
		}
		return nil
	})
	return ledger.Count("orders")
}

// refuses checks that a cut off node refuses identities, ranges and claims:
// within the leader wait since the cut, and after that at once.
func refuses(t *testing.T, n *harness.Node, stalls *harness.Stalls, cut time.Time) {
	t.Helper()
	calls := map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error {
			_, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
			return err
		},
		"range": func(ctx context.Context) error {
			_, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders"})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := n.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"})
			return err
		},
	}
	// The first round may be waiting for a leader; nothing waits longer than that.
	for _, round := range []string{"within the leader wait", "at once"} {
		for what, call := range calls {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			begin := time.Now()
			err := call(ctx)
			took := time.Since(begin)
			cancel()
			if reason := harness.Reason(err); reason != "NO_QUORUM" && reason != "OUTCOME_UNKNOWN" {
				t.Errorf("%s on cut off node %s: %v (reason %q)", what, n.Tag, err, reason)
			}
			bound := atOnce
			if round != "at once" {
				bound = time.Until(cut.Add(leaderWait+slack)) + took
			}
			if took > max(bound, atOnce)+stalls.Between(begin, begin.Add(took)) {
				t.Errorf("%s on cut off node %s was refused after %s, want %s (%s)", what, n.Tag, took, round, bound)
			}
		}
	}
}

// stillGives checks that a cut off node gives what needs no quorum.
func stillGives(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{}); err != nil {
		t.Errorf("GUID on cut off node %s: %v", n.Tag, err)
	}
	r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 3})
	if err != nil {
		t.Errorf("server-side id on cut off node %s: %v", n.Tag, err)
		return
	}
	for _, b := range r.Blocks {
		ledger.Record("etags of "+n.Tag, "stillGives", b.First, b.Last)
	}
}

// endedInTime checks that every call under way at the cut ended in time, and
// that calls made after it waited no longer than for a leader.
func endedInTime(t *testing.T, load *harness.Load, stalls *harness.Stalls, n *harness.Node, cut time.Time) {
	t.Helper()
	checked := 0
	var longest time.Duration
	for _, a := range load.Failures() {
		if a.Node != n || a.Return.Before(cut) {
			continue
		}
		checked++
		reason := harness.Reason(a.Err)
		if reason != "NO_QUORUM" && reason != "OUTCOME_UNKNOWN" {
			t.Errorf("call on cut off node %s ended with %v", n.Tag, a.Err)
		}
		late := a.Return.Sub(cut) - stalls.Between(cut, a.Return)
		if a.Call.Before(cut) && reason == "OUTCOME_UNKNOWN" {
			longest = max(longest, late)
		}
		if a.Call.Before(cut) && late > leaderWait+slack {
			t.Errorf("a waiting call on node %s ended %s after the cut", n.Tag, late)
		}
	}
	if longest > underWay {
		t.Errorf("a call under way on node %s ended %s after the cut, want at most %s", n.Tag, longest, underWay)
	}
	t.Logf("node %s cut off: the last call under way ended after %s", n.Tag, longest)
	if checked == 0 {
		t.Errorf("no call on node %s met the cut: the fault had no effect", n.Tag)
	}
}

// noSuccessAfter checks that without a quorum nobody gets an identity.
func noSuccessAfter(t *testing.T, ledger *harness.Ledger, load *harness.Load) {
	t.Helper()
	before, failures := ledger.Count("orders"), len(load.Failures())
	harness.Eventually(t, 10*time.Second, "refusals", func(context.Context) error {
		if n := len(load.Failures()) - failures; n < 100 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if after := ledger.Count("orders"); after != before {
		t.Errorf("%d identities without a quorum", after-before)
	}
}

// healed waits until every node gives identities again.
func healed(t *testing.T, c *harness.Cluster, ledger *harness.Ledger, before int64) {
	t.Helper()
	c.WaitReady(t)
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
	}
	if after := ledger.Count("orders"); after <= before {
		t.Error("no identity came after healing")
	}
}

// take takes one identity value through n.
func take(t *testing.T, n *harness.Node, ledger *harness.Ledger, name string) int64 {
	t.Helper()
	var value int64
	harness.Eventually(t, 10*time.Second, "an identity from node "+n.Tag, func(ctx context.Context) error {
		r, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name})
		if err != nil {
			return err
		}
		value = r.Blocks[0].First
		return nil
	})
	ledger.Record(name, "take from "+n.Tag, value, value)
	return value
}

// explained checks that only unknown outcomes left holes.
func explained(t *testing.T, ledger *harness.Ledger, load *harness.Load) {
	t.Helper()
	holes := ledger.Max("orders") - ledger.Count("orders")
	if unknown := load.Unknown.Load(); holes > unknown {
		t.Errorf("%d holes, but only %d calls ended without a known outcome", holes, unknown)
	}
	t.Logf("%d identities, %d holes, %d unknown outcomes", ledger.Count("orders"), holes, load.Unknown.Load())
}
