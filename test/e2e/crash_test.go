package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// cycles is how often a fault is repeated: a few by default, as many as the
// environment variable IDNODE_E2E_CYCLES says for a long run.
func cycles(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("IDNODE_E2E_CYCLES")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// etags takes server-side ids from n and records them; it returns the first.
func etags(t *testing.T, n *harness.Node, ledger *harness.Ledger, count int64) int64 {
	t.Helper()
	var first int64
	harness.Eventually(t, 15*time.Second, "server-side ids from node "+n.Tag, func(ctx context.Context) error {
		r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: count, BlocksOnly: true})
		if err != nil {
			return err
		}
		first = r.Blocks[0].First
		for _, b := range r.Blocks {
			if b.Suffix != "-"+n.Tag {
				t.Errorf("node %s gave the suffix %q", n.Tag, b.Suffix)
			}
			ledger.Record("etags of "+n.Tag, "etags", b.First, b.Last)
		}
		return nil
	})
	return first
}

// TestNoElectionWithoutFault keeps a cluster under full load: its term must
// not change. A machine that stood still for half of a leader's lease is a fault;
// what happened meanwhile is not judged, and the load begins again.
func TestNoElectionWithoutFault(t *testing.T) {
	tier.Long(t)
	length := 10 * time.Second
	if text := os.Getenv("IDNODE_E2E_LOAD"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		length = d
	}
	c := harness.StartCluster(t, harness.Config{})
	ledger, stalls := harness.NewLedger(t), harness.MeasureStalls(t)
	stalls.Judge(t, func() error {
		term := view(t, c.Leader(t)).Term
		begin := time.Now()
		load := harness.StartLoad(ledger, c.Nodes, "orders", 170, 10*time.Second)
		<-time.After(length)
		load.Stop()
		t.Logf("%.0f identities a second", float64(load.OK.Load())/time.Since(begin).Seconds())
		return errors.Join(failures(load), sameTerm(t, c, term))
	})
	c.Agree(t)
}

// sameTerm is an error if a leader was elected since the term was this one.
func sameTerm(t *testing.T, c *harness.Cluster, term uint64) error {
	t.Helper()
	if now := view(t, c.Leader(t)).Term; now != term {
		return fmt.Errorf("term %d became %d", term, now)
	}
	return nil
}

func view(t *testing.T, n *harness.Node) *idnodev1.GetStatusResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlannedRestartLeavesNoHole: after a clean stop of all nodes etags and
// identities go on exactly where they were.
func TestPlannedRestartLeavesNoHole(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	last := make(map[string]int64)
	for _, n := range c.Nodes {
		last[n.Tag] = etags(t, n, ledger, 1)
		take(t, n, ledger, "orders")
	}
	for _, n := range c.Nodes {
		n.Process.Stop(t)
		n.Start(t)
		n.WaitReady(t)
	}
	for _, n := range c.Nodes {
		if next := etags(t, n, ledger, 1); next != last[n.Tag]+1 {
			t.Errorf("node %s: etag %d after %d and a planned restart", n.Tag, next, last[n.Tag])
		}
	}
	if v := take(t, c.Nodes[0], ledger, "orders"); v != 4 {
		t.Errorf("orders/%d after 3 and planned restarts", v)
	}
	// All of them at once. Nodes that stop wait a moment for each other, so that the
	// cluster records the etags of all; a machine that stands still outlasts that.
	harness.MeasureStalls(t).Judge(t, func() error {
		for _, n := range c.Nodes {
			last[n.Tag] = etags(t, n, ledger, 1)
		}
		for _, n := range c.Nodes {
			n.Process.Signal(t, syscall.SIGTERM)
		}
		for _, n := range c.Nodes {
			n.Process.Wait(t, 20*time.Second)
		}
		for _, n := range c.Nodes {
			n.Start(t)
		}
		c.WaitReady(t)
		var gaps error
		for _, n := range c.Nodes {
			if next := etags(t, n, ledger, 1); next != last[n.Tag]+1 {
				gaps = errors.Join(gaps, fmt.Errorf("node %s: etag %d after %d and a planned restart of all nodes at once", n.Tag, next, last[n.Tag]))
			}
		}
		return gaps
	})
}
