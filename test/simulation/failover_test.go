package simulation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// TestALostLeaderCostsOneElection: whether its process ends or its machine loses power, and
// also if a sync or an answer takes longer than a voter's turn, the others follow the leader of the next
// term. As no votes are split, what a fail-over takes is known.
func TestALostLeaderCostsOneElection(t *testing.T) {
	const (
		times = 3
		// syncs are those one after another: the candidate's term, a voter's term and vote,
		// and the first entry and the identity at the leader and a follower, which may
		// still write its vote when that entry arrives.
		syncs = 8
		// asking is for questions to voters, and for calls.
		asking = 20 * time.Millisecond
		// ways are those between nodes one after another.
		ways = 14
		// idle is twice the commit timeout: so late at most a leader without new entries
		// sends the commit index, and the next entry waits for the answer. The way there
		// and back is among the ways.
		idle = 2 * 20 * time.Millisecond
	)
	for _, tt := range []struct {
		nodes     int
		disk, way time.Duration
		silent    bool
	}{
		{3, 400 * time.Microsecond, 0, false},
		{3, 100 * time.Millisecond, 0, false},
		{5, 100 * time.Millisecond, 0, false},
		{3, 400 * time.Microsecond, 30 * time.Millisecond, false},
		{5, 400 * time.Microsecond, 50 * time.Millisecond, false},
		{3, 400 * time.Microsecond, 0, true},
		{5, 10 * time.Millisecond, 0, true},
	} {
		t.Run(fmt.Sprintf("nodes=%d/disk=%v/way=%v/silent=%v", tt.nodes, tt.disk, tt.way, tt.silent), func(t *testing.T) {
			inCluster(t, tt.nodes, func(w *world, c *client) {
				w.network.stretch(tt.way)
				limit := syncs*tt.disk + ways*(tt.way+w.plan.latency) + asking
				if tt.way > 0 {
					limit += idle
				}
				if tt.silent {
					// Two pauses between heartbeats, until somebody looks, and a dial.
					limit += 2*w.plan.heartbeat/5 + w.plan.heartbeat/20 + 50*time.Millisecond
				}
				for _, s := range w.founders() {
					s.disk.change(func(f *diskFaults) { f.latency = tt.disk })
				}
				for range times {
					if gap := c.loseLeader(t, tt.silent); gap > limit {
						t.Errorf("the next identity came after %v, want at most %v", gap, limit)
					}
				}
			})
		})
	}
}

// TestALeaderDiesWithQueuedEntries: at each moment of the write of an entry that its followers
// have on disk already. The next leader may commit that entry; no value comes twice, and the
// model judges each step.
func TestALeaderDiesWithQueuedEntries(t *testing.T) {
	const (
		calls   = 6
		step    = 10 * time.Millisecond // between two calls, and between two moments
		write   = (calls + 2) * step    // of the leader's disk
		moments = int(write/step) + calls
	)
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent=%v", silent), func(t *testing.T) {
			plan := sizedPlan(3)
			plan.wal = false // So the disk can tell what is on it.
			inClusterOf(t, plan, func(w *world, c *client) {
				given, queued := map[int64]bool{}, 0
				// A write takes half of its latency at least: which moments are in it is not known.
				for i := 0; i < moments || queued < calls; i++ {
					if i == 8*moments {
						t.Fatalf("in %d deaths its disk lacked what a follower's had %d times: this test proves little", i, queued)
					}
					leader := c.leader(t)
					leader.disk.change(func(f *diskFaults) { f.latency = write * 4 / 3 })
					answers := w.callAtIntervals(leader, calls, step)
					time.Sleep(step/2 + time.Duration(i%moments)*step)
					back := leader.hold()
					leader.current().kill(silent)
					others := w.othersThan(leader)
					if others[0].disk.last() > leader.disk.last() {
						queued++
					}
					for range calls {
						note(t, given, <-answers)
					}
					note(t, given, w.nextValues(c, others[0]))
					leader.disk.change(func(f *diskFaults) { f.latency = 0 })
					back()
					time.Sleep(settling)
				}
			})
		})
	}
}

// callAtIntervals has callers ask a node for an identity, one after the other, and returns what
// each got.
func (w *world) callAtIntervals(s *server, calls int, interval time.Duration) <-chan []history.Block {
	answers := make(chan []history.Block, calls)
	for i := range calls {
		w.running.Go(func() {
			time.Sleep(time.Duration(i) * interval)
			c := newClient(w, i+1)
			defer c.close()
			answers <- w.nextValues(c, s)
		})
	}
	return answers
}

// nextValues takes an identity, and returns nothing if the outcome is not known.
func (w *world) nextValues(c *client, s *server) []history.Block {
	op := history.Op{Kind: history.Next, Name: "orders", Count: 1}
	return c.once(w.ctx, s, op, c.next).Blocks
}

// note fails if a value was given before.
func note(t *testing.T, given map[int64]bool, blocks []history.Block) {
	t.Helper()
	for _, b := range blocks {
		for v := b.First; v <= b.Last; v++ {
			if given[v] {
				t.Errorf("%d was given twice", v)
			}
			given[v] = true
		}
	}
}

// last is the newest log entry that the disk has durably.
func (d *disk) last() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, last := d.durable.bounds()
	return last
}

// TestALostLeaderIsReplacedAfterAMemberRestarted: the candidate led before, and still has
// connections to the former process of the member whose vote it needs. If its machine lost
// power, nothing has told of their end.
func TestALostLeaderIsReplacedAfterAMemberRestarted(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent=%v", silent), func(t *testing.T) {
			inCluster(t, 3, func(w *world, c *client) {
				w.network.unheard = 20 * time.Second // As long as a node's keepalive.
				nodes := w.founders()
				candidate, restarted, leader := nodes[0], nodes[1], nodes[2]
				for range 3 {
					c.transferLeadership(t, candidate)
					c.transferLeadership(t, leader)
					restarted.current().kill(silent)
					time.Sleep(4 * time.Second)
					if gap := c.loseLeader(t, false); gap > 50*time.Millisecond {
						t.Errorf("the next identity came after %v", gap)
					}
				}
			})
		})
	}
}

// transferLeadership makes a node the leader.
func (c *client) transferLeadership(t *testing.T, to *server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(c.world.ctx, settling)
	defer cancel()
	if _, err := c.cluster(to).TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: to.tag()}); err != nil {
		t.Fatalf("leadership does not go to node %s: %v", to.host, err)
	}
	time.Sleep(settling)
}

// TestALeaderWhoseConnectionsBreakLeadsOn: also if its answer to a new connection takes most
// of the time that it has. On longer links it loses its lease before it has connected again.
func TestALeaderWhoseConnectionsBreakLeadsOn(t *testing.T) {
	for _, way := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(fmt.Sprintf("way=%v", way), func(t *testing.T) {
			inCluster(t, 3, func(w *world, c *client) {
				w.network.stretch(way)
				time.Sleep(settling)
				nodes := w.founders()
				before := c.status(t, nodes[0])
				for range 10 {
					for _, s := range nodes {
						w.network.reset(before.GetLeaderTag(), s.host, true)
					}
					time.Sleep(2 * time.Second)
				}
				if after := c.status(t, nodes[0]); after.GetTerm() != before.GetTerm() {
					t.Errorf("term %d follows %d", after.GetTerm(), before.GetTerm())
				}
			})
		})
	}
}

// TestLeadersThatStandStill one after the other, for longer than their lease, and come back: each is
// replaced as soon as the first. What a process that stood still sends late is no sign of a busy
// machine, nor of a long way to it.
func TestLeadersThatStandStill(t *testing.T) {
	inCluster(t, 3, func(w *world, c *client) {
		const still = 500 * time.Millisecond
		// Two pauses between heartbeats, until somebody looks, a dial, and the votes.
		limit := 2*w.plan.heartbeat/5 + w.plan.heartbeat/20 + 50*time.Millisecond + 30*time.Millisecond
		for i := range 24 {
			leader := c.leader(t)
			others := w.othersThan(leader)
			w.network.freeze(leader.host, still)
			begin := time.Now()
			for !c.take(w.ctx, others[i%len(others)]) {
			}
			if gap := time.Since(begin); gap > limit {
				t.Errorf("leader %d, %s: the next identity came after %v, want at most %v", i+1, leader.host, gap, limit)
			}
			// It is back before the next one.
			time.Sleep(time.Until(begin.Add(still + time.Duration(4+i)*50*time.Millisecond)))
		}
	})
}

// loseLeader kills the leader and returns how long after that another node gave an
// identity. The leader is back when it returns.
func (c *client) loseLeader(t *testing.T, silent bool) time.Duration {
	t.Helper()
	nodes := c.world.founders()
	before, leader := c.status(t, nodes[0]), c.leader(t)
	other := nodes[(slices.Index(nodes, leader)+1)%len(nodes)]
	release := leader.hold()
	begin := time.Now()
	leader.current().kill(silent)
	for !c.take(c.world.ctx, other) {
	}
	gap := time.Since(begin)
	if after := c.status(t, other); after.GetTerm() != before.GetTerm()+1 {
		t.Errorf("term %d follows %d", after.GetTerm(), before.GetTerm())
	}
	release()
	time.Sleep(settling)
	return gap
}

// status is a node's own view.
func (c *client) status(t *testing.T, s *server) *idnodev1.GetStatusResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(c.world.ctx, time.Second)
	defer cancel()
	r, err := c.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatalf("node %s: %v", s.host, err)
	}
	return r
}
