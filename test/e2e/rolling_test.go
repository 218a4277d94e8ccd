package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/bench"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// rollingCallers wait for an identity each, at any time of a rolling restart.
	rollingCallers = 64
	// rollingLongest bounds the longest of their calls on a machine that is busy with other
	// things. docs/evidence/performance.md has the figures.
	rollingLongest = 2 * time.Second
)

// TestRollingRestart stops and starts all nodes, one after the other, the leader last: no
// call fails, and none takes long.
func TestRollingRestart(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	for range cycles(t, 1) {
		leader := c.Leader(t)
		for _, n := range append(c.Others(leader), leader) {
			report := underLoad(t, c, func(more func()) {
				led := c.Leader(t) == n
				n.Process.Stop(t)
				more()
				n.Start(t)
				c.WaitReady(t)
				more()
				t.Logf("node %s restarted, it led: %v", n.Tag, led)
			})
			t.Logf("%.0f calls/s: p50 %v, p99 %v, p99.9 %v, longest %v", report.CallsPerS,
				micros(report.P50us), micros(report.P99us), micros(report.P999us), micros(report.MaxUs))
			if len(report.ErrorReasons) > 0 {
				t.Errorf("calls failed while node %s was restarted: %v", n.Tag, report.ErrorReasons)
			}
			if longest := micros(report.MaxUs); longest > rollingLongest {
				t.Errorf("a call took %v while node %s was restarted, want at most %v", longest, n.Tag, rollingLongest)
			}
		}
	}
	c.Agree(t)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// underLoad runs do under the load of callers of all nodes. do may wait for more calls to
// be answered.
func underLoad(t *testing.T, c *harness.Cluster, do func(more func())) bench.Report {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg := bench.Config{
		Op: bench.Identity, Via: bench.ViaClient, Callers: rollingCallers, Batch: 1, Names: 16,
		Duration: time.Hour, Database: "default", Prefix: "rolling/", Client: newClient(t, c.Nodes...),
	}
	var progress bench.Progress
	var report bench.Report
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		report, err = bench.Run(ctx, cfg, &progress)
	}()
	more := func() {
		begun, _, _ := progress.Counts()
		harness.Eventually(t, 20*time.Second, "calls that are answered", func(context.Context) error {
			if calls, _, _ := progress.Counts(); calls < begun+5*rollingCallers {
				return context.DeadlineExceeded
			}
			return nil
		})
	}
	more()
	do(more)
	stop()
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	return report
}
