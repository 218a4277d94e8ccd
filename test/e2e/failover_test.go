package e2e

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// failOverCallers is how many callers the cluster has while its leader is killed.
const failOverCallers = 64

// TestAKilledLeaderIsReplacedInABlink kills the leader under load, again and again, and
// measures on every surviving node how long after the kill an identity comes that was
// asked for after it. IDNODE_E2E_CYCLES says how many times.
//
// The bound is far above what a quiet machine needs, and far below what the heartbeat
// timeout alone needs.
func TestAKilledLeaderIsReplacedInABlink(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Direct: true})
	ledger, stalls := harness.NewLedger(t), harness.MeasureStalls(t)
	load := harness.StartLoad(ledger, c.Nodes, "orders", (failOverCallers+len(c.Nodes)-1)/len(c.Nodes), 10*time.Second)
	var all []time.Duration
	for range cycles(t, 6) {
		leader, before := c.Leader(t), load.OK.Load()
		harness.Eventually(t, 10*time.Second, "load before the kill", func(context.Context) error {
			if load.OK.Load() < before+200 {
				return errors.New("too few calls were answered")
			}
			return nil
		})
		all = append(all, gapsAfterKill(t, leader, c.Others(leader), stalls)...)
		leader.Start(t)
		c.WaitReady(t)
	}
	load.Stop()
	c.Agree(t)
	at := func(percent int) time.Duration {
		return harness.QuantileOfTimes(all, 10*percent).Round(time.Millisecond)
	}
	t.Logf("%d times an identity after a killed leader: p50 %s, p99 %s, max %s", len(all), at(50), at(99), at(100))
	if at(50) > 250*time.Millisecond {
		t.Errorf("half of them took %s and more, want at most 250ms", at(50))
	}
}

// gapsAfterKill kills a node and returns how long after that each of the others gave an
// identity. Time in which the machine stood still does not count.
func gapsAfterKill(t *testing.T, n *harness.Node, others []*harness.Node, stalls *harness.Stalls) []time.Duration {
	t.Helper()
	gaps := make([]time.Duration, len(others))
	begin := time.Now()
	n.Process.Signal(t, syscall.SIGKILL)
	var asking sync.WaitGroup
	for i, o := range others {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			for ctx.Err() == nil {
				if _, err := o.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "probes"}); err == nil {
					break
				}
			}
			gaps[i] = time.Since(begin) - stalls.Between(begin, time.Now())
		})
	}
	asking.Wait()
	n.Process.Kill() // It waits for its end.
	return gaps
}
