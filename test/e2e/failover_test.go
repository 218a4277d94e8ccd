package e2e

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// failOverCallers is how many callers the cluster has while its leader is killed.
const failOverCallers = 64

// TestAKilledLeaderIsReplacedInABlink kills the leader under load, again and again, and
// measures on every surviving node how long after the kill an identity comes that was
// asked for after it. IDNODE_E2E_CYCLES says how many times, IDNODE_E2E_SYNC by how much each
// sync of the disks is delayed.
func TestAKilledLeaderIsReplacedInABlink(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Direct: true})
	if text := os.Getenv("IDNODE_E2E_SYNC"); text != "" {
		slowDisks(t, c, text)
	}
	ledger, stalls := harness.NewLedger(t), harness.MeasureStalls(t)
	load := harness.StartLoad(ledger, c.Nodes, "orders", (failOverCallers+len(c.Nodes)-1)/len(c.Nodes), 10*time.Second)
	var all []time.Duration
	for range cycles(t, 6) {
		leader := c.Leader(t)
		awaitLoad(t, load)
		all = append(all, gapsAfterKill(t, leader, c.Others(leader), stalls)...)
		leader.Start(t)
		c.WaitReady(t)
	}
	load.Stop()
	c.Agree(t)
	// Far above what a quiet machine needs, and far below what the heartbeat timeout needs.
	quickly(t, all, 250*time.Millisecond)
}

// slowDisks starts the nodes again with syncs that take longer by a duration in text.
func slowDisks(t *testing.T, c *harness.Cluster, text string) {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		n.SlowDisk(t, d)
		n.Process.Kill()
		n.Start(t)
	}
	c.WaitReady(t)
}

// gapsAfterKill kills a node and returns how long after that each of the others gave an
// identity.
func gapsAfterKill(t *testing.T, n *harness.Node, others []*harness.Node, stalls *harness.Stalls) []time.Duration {
	t.Helper()
	killed := time.Now()
	n.Process.Signal(t, syscall.SIGKILL)
	defer n.Process.Kill() // It waits for its end.
	return gapsSince(killed, others, stalls)
}

// gapsSince returns how long after a time each node gave an identity that was asked for
// from now on. Time in which the machine stood still does not count.
func gapsSince(begin time.Time, nodes []*harness.Node, stalls *harness.Stalls) []time.Duration {
	gaps := make([]time.Duration, len(nodes))
	var asking sync.WaitGroup
	for i, n := range nodes {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			for ctx.Err() == nil {
				if _, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "probes"}); err == nil {
					break
				}
			}
			gaps[i] = time.Since(begin) - stalls.Between(begin, time.Now())
		})
	}
	asking.Wait()
	return gaps
}

// awaitLoad waits until so many more calls were answered that the cluster is at work.
func awaitLoad(t *testing.T, load *harness.Load) {
	t.Helper()
	before := load.OK.Load()
	harness.Eventually(t, 10*time.Second, "load before the kill", func(context.Context) error {
		if load.OK.Load() < before+200 {
			return errors.New("too few calls were answered")
		}
		return nil
	})
}

// quickly logs how long the fail-overs took, half of which must take less than the bound.
func quickly(t *testing.T, gaps []time.Duration, bound time.Duration) {
	t.Helper()
	at := func(percent int) time.Duration {
		return harness.QuantileOfTimes(gaps, 10*percent).Round(time.Millisecond)
	}
	t.Logf("%d times an identity after a killed leader: p50 %s, p99 %s, max %s", len(gaps), at(50), at(99), at(100))
	if at(50) > bound {
		t.Errorf("half of them took %s and more, want at most %s", at(50), bound)
	}
}

// TestAKilledContainerIsReplacedInABlink does the same to the containers of
// deploy/docker-compose.yml. A container takes its address along: nobody refuses a new
// connection to it.
func TestAKilledContainerIsReplacedInABlink(t *testing.T) {
	tier.Long(t)
	c := harness.StartCompose(t)
	ledger, stalls := harness.NewLedger(t), harness.MeasureStalls(t)
	load := harness.StartLoad(ledger, nodesOf(c.Containers), "orders", (failOverCallers+len(c.Containers)-1)/len(c.Containers), 10*time.Second)
	var all []time.Duration
	for range cycles(t, 2) {
		leader, others := c.Leader(t, c.Containers...)
		awaitLoad(t, load)
		ended, killed := leader.KillNow(t)
		all = append(all, gapsSince(ended, nodesOf(others), stalls)...)
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		leader.StartAgain(t)
		leader.WaitHealthy(t)
	}
	load.Stop()
	c.Agree(t)
	quickly(t, all, time.Second) // The engine takes its time, and so may the heartbeat.
}
