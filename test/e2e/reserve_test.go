package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// rangeCallers take ranges of each node, one after the other, and record the numbers.
type rangeCallers struct {
	nodes  []*harness.Node
	ledger *harness.Ledger
	// strict are the nodes whose callers may see no failure, by tag.
	strict sync.Map
	// reserved counts the ranges that came from a reserve.
	reserved atomic.Int64
}

// run calls until stop is called, which waits for the callers.
func (r *rangeCallers) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for _, n := range r.nodes {
		callers.Go(func() { r.call(ctx, t, n) })
	}
	stop = func() { cancel(); callers.Wait() }
	t.Cleanup(stop)
	return stop
}

// call takes ranges of one node. As RavenDB's clients do, it says what it knows to be
// taken.
func (r *rangeCallers) call(ctx context.Context, t *testing.T, n *harness.Node) {
	var lastMax int64
	for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		bound, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		got, err := n.Ids.NextRange(bound, &idnodev1.NextRangeRequest{Tag: "orders", Size: 4, LastMax: lastMax})
		cancel()
		if err != nil {
			if _, strict := r.strict.Load(n.Tag); strict {
				t.Errorf("node %s: %v", n.Tag, err)
				return
			}
			continue
		}
		if got.FromReserve != (got.LogIndex == 0) || got.NodeTag != n.Tag {
			t.Errorf("a range of node %s: %v", n.Tag, got)
		}
		if got.FromReserve {
			r.reserved.Add(1)
		}
		lastMax = max(lastMax, got.High)
		r.ledger.Record("orders", "a caller of "+n.Tag, got.Low, got.High)
	}
}

// reserveOf reads how many numbers a node has in reserve.
func reserveOf(n *harness.Node) (float64, error) {
	res, err := http.Get("http://" + n.HTTP + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(body), "\nidnode_hilo_reserve_numbers ")
	value, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(value, 64)
}

// awaitReserves waits until each of the nodes has this many numbers in reserve.
func awaitReserves(t *testing.T, within time.Duration, least float64, nodes ...*harness.Node) {
	t.Helper()
	harness.Eventually(t, within, "numbers in reserve", func(context.Context) error {
		for _, n := range nodes {
			if numbers, err := reserveOf(n); err != nil || numbers < least {
				return fmt.Errorf("node %s: %v of %v %v", n.Tag, numbers, least, err)
			}
		}
		return nil
	})
}

// TestRangesGoOnWhileCutOff: callers of a node that is cut off, and of those that survive
// a killed leader, see no failure, and no number comes twice. What a killed process had in
// reserve is given by nobody.
func TestRangesGoOnWhileCutOff(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Flags: []string{"--reserve-for=20s"}})
	r := &rangeCallers{nodes: c.Nodes, ledger: harness.NewLedger(t)}
	stop := r.run(t)
	awaitReserves(t, 20*time.Second, 500, c.Nodes...)

	lonely := c.Others(c.Leader(t))[0]
	r.strict.Store(lonely.Tag, true)
	c.Isolate(lonely)
	before := r.reserved.Load()
	harness.Eventually(t, 15*time.Second, "ranges from the reserve", func(context.Context) error {
		if n := r.reserved.Load() - before; n < 100 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	target := "http://" + lonely.HTTP + "/databases/default/hilo/next?tag=orders"
	res, err := http.Get(target)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("RavenDB's call on the node that is cut off: %v %v", res, err)
	}
	res.Body.Close()
	if _, err := lonely.Ids.NextIdentity(context.Background(), &idnodev1.NextIdentityRequest{Name: "orders|"}); err == nil {
		t.Error("a node that is cut off gave an identity")
	}
	c.Heal()
	c.WaitReady(t)
	awaitReserves(t, 20*time.Second, 500, c.Nodes...)

	leader := c.Leader(t)
	r.strict.Delete(leader.Tag)
	for _, n := range c.Others(leader) {
		r.strict.Store(n.Tag, true)
	}
	leader.Process.Kill()
	c.Leader(t)
	leader.Start(t)
	c.WaitReady(t)

	r.strict.Clear()
	stop()
	lonely.Process.Kill()
	c.Isolate(lonely)
	lonely.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if got, err := lonely.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders"}); err == nil {
		t.Errorf("a process that has not reached the cluster gave %v", got)
	}
	c.Heal()
	c.WaitReady(t)
	c.Agree(t)
	t.Logf("%d numbers were given, the last is %d; %d ranges came from reserves",
		r.ledger.Count("orders"), r.ledger.Max("orders"), r.reserved.Load())
}
