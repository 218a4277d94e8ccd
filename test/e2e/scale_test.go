package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// defaultNames is how many identities, and as many HiLo tags, TestScale makes;
	// IDNODE_E2E_NAMES says otherwise. The bounds are those of a million of each.
	// Those on the cost and on the delay by a snapshot are for a machine that does
	// nothing else, so they are checked only where the number was given.
	defaultNames = 40_000

	maxSeeding = 2 * time.Minute
	maxRestart = 5 * time.Second
	maxJoin    = 30 * time.Second
	// maxReplay is for a node that has the whole log to read: nothing is promised
	// of that, so it is generous.
	maxReplay        = time.Minute
	maxSnapshotDelay = 10 * time.Millisecond
	maxCostGrowth    = 1.5
	// costTime is how long each of the two measurements of the cost takes.
	costTime = 2 * time.Second
	// snapshotFree is how long the time without a snapshot is measured.
	snapshotFree = 3 * time.Second
	// maxResidentPerName bounds what a name adds to the resident memory of a node,
	// beside residentAside for buffers and caches. Go lets the heap grow to twice
	// what is in use before it collects: 150 bytes of heap become 300.
	maxResidentPerName = 300
	residentAside      = 96 << 20
)

// snapshotSteadily makes a node take a snapshot four to eight seconds after the
// last, and keep so few entries that others need it.
var snapshotSteadily = failpoint.Tuning{SnapshotThreshold: 1, SnapshotInterval: 4 * time.Second, TrailingLogs: 64}

// scaleNames is how many names of each kind are made.
func scaleNames(t *testing.T) int {
	t.Helper()
	text := os.Getenv("IDNODE_E2E_NAMES")
	if text == "" {
		return defaultNames
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("IDNODE_E2E_NAMES is %q, want a number of at least 1000", text)
	}
	return n
}

// measured says whether this run is one on a machine that does nothing else.
func measured() bool { return os.Getenv("IDNODE_E2E_NAMES") != "" }

// scaleName is the i-th of n names, in an order without order, so that the
// state's trees fill as they would in service.
func scaleName(i, n int) string { return fmt.Sprintf("collections/%07d", i%n*617_587%n) }

func callRange(tag string) *idnodev1.Call {
	return &idnodev1.Call{Call: &idnodev1.Call_NextRange{NextRange: &idnodev1.NextRangeRequest{Tag: tag}}}
}

// TestScale fills a cluster with names through the API, and checks that it stays
// what it was with one: what a name takes of memory, what an identity takes of
// processor time, how soon a node is back, how soon a new one is there, and that
// snapshots delay no caller.
func TestScale(t *testing.T) {
	tier.Long(t)
	n := scaleNames(t)
	c := harness.StartCluster(t, harness.Config{Direct: true, Tuning: failpoint.Tuning{SnapshotInterval: 24 * time.Hour}})
	few := costPerIdentity(t, c, 1)
	seed(t, c, n)
	many := costPerIdentity(t, c, n)
	t.Logf("processor time of three nodes per identity: %v with one name, %v with %d", few, many, n)
	if growth := float64(many) / float64(few); measured() && growth > maxCostGrowth {
		t.Errorf("an identity costs %.2f times as much with %d names, want at most %.1f", growth, n, maxCostGrowth)
	}
	subject := c.Others(c.Leader(t))[0]
	withSnapshots(t, c, subject)
	snapshotsUnderLoad(t, c, subject, n)
	restart(t, c, subject)
	joinFresh(t, c, subject)
}

// seed makes n identities and n HiLo tags.
func seed(t *testing.T, c *harness.Cluster, n int) {
	t.Helper()
	const batch = 500
	before := c.Memory(t)
	f := harness.StreamLoad{
		Nodes: c.Nodes, Streams: 1, Batch: batch, InFlight: 4, Messages: 2 * n / batch,
		Call: func(i int) *idnodev1.Call {
			if i%2 == 0 {
				return harness.CallIdentity(scaleName(i/2, n))
			}
			return callRange(scaleName(i/2, n))
		},
	}.Complete(t)
	t.Logf("%d names in %v, %.0f a second", f.OK, f.Took, float64(f.OK)/f.Took.Seconds())
	if f.Took > maxSeeding {
		t.Errorf("this took more than %v", maxSeeding)
	}
	c.Agree(t)
	for i, after := range c.Memory(t) {
		grown := after - before[i]
		t.Logf("node %s: %d MB resident, %d bytes more per name", c.Nodes[i].Tag, after>>20, grown/int64(f.OK))
		if grown > int64(f.OK)*maxResidentPerName+residentAside {
			t.Errorf("it grew by %d bytes, want at most %d for each name and %d", grown, maxResidentPerName, residentAside)
		}
	}
	status := statusOf(t, c.Nodes[0])
	if missing := int64(f.Sent - f.OK); status.Counts.Identities < int64(n)-missing || status.Counts.Hilos < int64(n)-missing {
		t.Fatalf("the state counts %v", status.Counts)
	}
}

func statusOf(t *testing.T, n *harness.Node) *idnodev1.GetStatusResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	status, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// costPerIdentity is the processor time that all nodes together use for one
// identity, when they are asked for one of n names at a time. The clock on the
// wall would show what else the machine does.
func costPerIdentity(t *testing.T, c *harness.Cluster, n int) time.Duration {
	t.Helper()
	used := func() (sum time.Duration) {
		for _, n := range c.Nodes {
			sum += n.Process.CPU(t)
		}
		return sum
	}
	before := used()
	f := harness.StreamLoad{
		Nodes: c.Nodes, Streams: 1, Batch: 256, InFlight: 4, Duration: costTime,
		Call: func(i int) *idnodev1.Call { return harness.CallIdentity(scaleName(i, n)) },
	}.Complete(t)
	t.Logf("%.0f identities a second of %d names", float64(f.OK)/f.Took.Seconds(), n)
	return (used() - before) / time.Duration(f.OK)
}

// withSnapshots makes a node one that takes snapshots, and the leader, whose
// snapshots hold up most. It has taken none before, so it reads the whole log.
func withSnapshots(t *testing.T, c *harness.Cluster, n *harness.Node) {
	t.Helper()
	n.Process.Stop(t)
	begin := time.Now()
	n.Tuning = snapshotSteadily
	n.Start(t)
	n.WaitReady(t)
	harness.Eventually(t, maxReplay, "node "+n.Tag+" has read its log", func(context.Context) error {
		if behind := statusOf(t, c.Leader(t)).AppliedIndex - statusOf(t, n).AppliedIndex; behind > 0 {
			return fmt.Errorf("it is %d entries behind", behind)
		}
		return nil
	})
	t.Logf("node %s had read its whole log after %v", n.Tag, time.Since(begin))
	letLead(t, c, n, n)
}

// snapshotsUnderLoad hands out identities at full speed until the leader has
// written a snapshot and some time has passed without one, and compares the calls
// that met it with the others.
func snapshotsUnderLoad(t *testing.T, c *harness.Cluster, leader *harness.Node, n int) {
	t.Helper()
	watch := harness.WatchSnapshots(t, []*harness.Node{leader})
	f := harness.StreamLoad{
		Nodes: c.Nodes, Streams: 1, Batch: 64, InFlight: 1, Duration: time.Minute, Repeat: true,
		Call: func(i int) *idnodev1.Call { return harness.CallIdentity(scaleName(i*7919, n)) },
		Until: func() bool {
			written, last := watch.Written()
			return written > 0 && time.Since(last) > snapshotFree
		},
	}.Complete(t)
	taken := watch.Stop()
	t.Logf("%.0f identities a second", float64(f.OK)/f.Took.Seconds())
	var with, without []harness.StreamSample
	for _, s := range f.Samples {
		if taken.Overlap(s.At.Add(-s.Took), s.At) {
			with = append(with, s)
		} else {
			without = append(without, s)
		}
	}
	t.Logf("%d snapshots, which took %v", taken.Count(), taken.Times())
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		t.Logf("p%g: %v without a snapshot, %v with one", q*100, harness.Quantile(without, q), harness.Quantile(with, q))
	}
	if taken.Count() == 0 || len(without) < 100 {
		t.Fatalf("%d snapshots, %d answers without one: this shows nothing", taken.Count(), len(without))
	}
	if added := harness.Quantile(with, 0.99) - harness.Quantile(without, 0.99); measured() && added > maxSnapshotDelay {
		t.Errorf("a snapshot adds %v to the 99th percentile, want at most %v", added, maxSnapshotDelay)
	}
}

// restart waits until the node has a snapshot of what is there, kills it and
// starts it again.
func restart(t *testing.T, c *harness.Cluster, n *harness.Node) {
	t.Helper()
	idle := harness.WatchSnapshots(t, []*harness.Node{n})
	harness.Eventually(t, time.Minute, "a snapshot of node "+n.Tag, func(context.Context) error {
		if written, _ := idle.Written(); written == 0 {
			return errors.New("there is none yet")
		}
		return nil
	})
	n.Process.Kill()
	begin := time.Now()
	n.Start(t)
	n.WaitReady(t)
	took := time.Since(begin)
	t.Logf("a killed node was ready after %v", took)
	if took > maxRestart {
		t.Errorf("this took more than %v", maxRestart)
	}
	if !strings.Contains(n.Process.Output(), "restored from snapshot") {
		t.Error("it did not begin with a snapshot")
	}
	c.Agree(t)
}

// joinFresh lets a fourth node join while identities are handed out. The leader
// has dropped the beginning of its log, so it sends a snapshot.
func joinFresh(t *testing.T, c *harness.Cluster, leader *harness.Node) {
	t.Helper()
	letLead(t, c, leader, leader)
	load := harness.StartLoad(harness.NewLedger(t), c.Nodes, "orders", 4, 10*time.Second)
	fresh := c.Add(t, "", "--join", leader.GRPC)
	begin := time.Now()
	fresh.Start(t)
	fresh.Settled(t)
	awaitVote(t, leader, fresh.Tag)
	load.Stop()
	noFailures(t, load)
	c.Agree(t)
	took := time.Since(begin)
	t.Logf("a fresh node had everything after %v", took)
	if took > maxJoin {
		t.Errorf("this took more than %v", maxJoin)
	}
	if !strings.Contains(fresh.Process.Output(), "Installed remote snapshot") {
		t.Error("it was not given a snapshot")
	}
}
