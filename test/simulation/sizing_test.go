package simulation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/sizing"
)

// sent is what was written in a direction.
type sent struct{ bytes, writes int }

// count counts a write. The caller holds mu.
func (n *network) count(e edge, bytes int) {
	s := n.sent[e]
	n.sent[e] = sent{s.bytes + bytes, s.writes + 1}
}

// countSync counts a sync of a file of the log.
func (d *disk) countSync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced++
}

// expense is what nodes and callers have used so far, or within a time.
type expense struct {
	between, callers sent // between the nodes, and with their callers
	syncs            int  // of all nodes' logs
	calls            int
}

// expenses is what has been used so far, with so many calls.
func (w *world) expenses(calls *atomic.Int64) expense {
	e := expense{calls: int(calls.Load())}
	w.network.mu.Lock()
	all := maps.Clone(w.network.sent)
	w.network.mu.Unlock()
	for way, s := range all {
		to := &e.between
		if isClient(way.from) || isClient(way.to) {
			to = &e.callers
		}
		to.bytes, to.writes = to.bytes+s.bytes, to.writes+s.writes
	}
	for _, s := range w.founders() {
		s.disk.mu.Lock()
		e.syncs += s.disk.synced
		s.disk.mu.Unlock()
	}
	return e
}

// since is what was used after before.
func (e expense) since(before expense) expense {
	return expense{
		between: sent{e.between.bytes - before.between.bytes, e.between.writes - before.between.writes},
		callers: sent{e.callers.bytes - before.callers.bytes, e.callers.writes - before.callers.writes},
		syncs:   e.syncs - before.syncs, calls: e.calls - before.calls,
	}
}

// sizedPlan is a cluster with the program's own configuration and no fault, on a quick
// network and disks that sync in 0.2 to 0.4 ms.
func sizedPlan(nodes int) plan {
	return plan{
		seed: 1, nodes: nodes, wal: true, latency: 100 * time.Microsecond, diskLatency: 400 * time.Microsecond,
		heartbeat: config.Default().HeartbeatTimeout,
	}
}

// settling is the time in which a new cluster comes to rest.
const settling = 10 * time.Second

// inCluster runs f with a cluster at rest, in virtual time.
func inCluster(t *testing.T, nodes int, f func(w *world, c *client)) {
	t.Helper()
	inClusterOf(t, sizedPlan(nodes), f)
}

// inClusterOf is inCluster with a plan.
func inClusterOf(t *testing.T, p plan, f func(w *world, c *client)) {
	t.Helper()
	defer standsStill(1).Stop()
	inBubble(t, func() {
		ctx, cancel := context.WithCancel(context.Background())
		w := newWorld(ctx, p, nil)
		for _, s := range w.founders() {
			// Which nodes have slow disks is drawn elsewhere.
			s.disk.change(func(f *diskFaults) { f.slow = 0 })
			w.running.Go(s.run)
		}
		c := newClient(w, 0)
		for _, s := range w.founders() {
			if !c.servesBy(s, time.Now().Add(identityLimit)) {
				t.Errorf("node %s does not serve", s.host)
			}
		}
		time.Sleep(settling)
		f(w, c)
		c.close()
		cancel()
		w.running.Wait()
		time.Sleep(lastMoments)
		for _, finding := range w.failures() {
			t.Error(finding)
		}
	})
}

// TestIdleTraffic compares docs/evidence/sizing.md with what nodes without callers send each other,
// in clusters of two sizes.
func TestIdleTraffic(t *testing.T) {
	const seconds = 20
	page := sizing.Read(t, "voters, no caller")
	for _, nodes := range []int{3, 5} {
		inCluster(t, nodes, func(w *world, _ *client) {
			var none atomic.Int64
			time.Sleep(seconds * time.Second) // Until the leader knows that nothing is written.
			before := w.expenses(&none)
			time.Sleep(seconds * time.Second)
			e := w.expenses(&none).since(before)
			row := fmt.Sprint(nodes)
			page.Check(t, row, "bytes a second", float64(e.between.bytes)/seconds)
			page.Check(t, row, "writes a second", float64(e.between.writes)/seconds)
			if e.syncs != 0 {
				t.Errorf("%d nodes without callers synced their logs %d times", nodes, e.syncs)
			}
		})
	}
}

// TestAnIdleClusterTellsOfACommit: after a long time without entries a follower learns as soon as ever that the
// next one is committed, so that a read there does not wait.
func TestAnIdleClusterTellsOfACommit(t *testing.T) {
	inCluster(t, 3, func(w *world, c *client) {
		leader := c.leader(t)
		time.Sleep(time.Minute)
		if got := c.once(w.ctx, leader, history.Op{Kind: history.Next, Name: "orders", Count: 1}, c.next); got.Outcome != history.OK {
			t.Fatalf("the leader answered %q", got.Code)
		}
		for _, s := range w.othersThan(leader) {
			began := time.Now()
			if _, err := c.ids(s).GetIdentity(w.ctx, &idnodev1.GetIdentityRequest{Name: "orders"}); err != nil {
				t.Error(err)
			}
			// Twice the commit timeout.
			if took := time.Since(began); took > 50*time.Millisecond {
				t.Errorf("a read on the follower %s took %v", s.host, took)
			}
		}
	})
}

// TestCostOfACall compares docs/evidence/sizing.md with what an identity costs three nodes and its
// caller, with few and with many callers.
func TestCostOfACall(t *testing.T) {
	page := sizing.Read(t, "callers")
	for _, row := range []struct {
		callers int
		within  time.Duration
	}{{1, 200 * time.Millisecond}, {64, 50 * time.Millisecond}, {512, 25 * time.Millisecond}} {
		var e expense
		inCluster(t, 3, func(w *world, c *client) { e = c.load(row.callers, row.within) })
		name, calls := fmt.Sprint(row.callers), float64(e.calls)
		t.Logf("%d calls of %d callers", e.calls, row.callers)
		page.Check(t, name, "fsyncs of a node", float64(e.syncs)/3/calls)
		page.Check(t, name, "bytes between nodes", float64(e.between.bytes)/calls)
		page.Check(t, name, "writes between nodes", float64(e.between.writes)/calls)
		page.Check(t, name, "bytes with the caller", float64(e.callers.bytes)/calls)
	}
}

// load has callers, spread over the nodes, take an identity each at a time, and returns
// what that cost within a time.
func (c *client) load(callers int, within time.Duration) expense {
	ctx, cancel := context.WithCancel(c.world.ctx)
	var calls atomic.Int64
	var running sync.WaitGroup
	nodes := c.world.founders()
	for i := range callers {
		ids := c.ids(nodes[i%len(nodes)])
		running.Go(func() {
			for ctx.Err() == nil {
				if _, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "collections/0000000", Count: 1}); err == nil {
					calls.Add(1)
				} else if ctx.Err() == nil {
					c.world.found("a call failed: %v", err)
				}
			}
		})
	}
	time.Sleep(within / 4)
	before := c.world.expenses(&calls)
	time.Sleep(within)
	e := c.world.expenses(&calls).since(before)
	cancel()
	running.Wait()
	return e
}
