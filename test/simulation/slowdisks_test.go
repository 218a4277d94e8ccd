package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// betweenTries is time, without which a node that is down would be asked forever.
const betweenTries = 10 * time.Millisecond

// writesOfElections is how many writes, one after another, may pass until there is a leader:
// those of an election and of the first identity, and some elections in which votes are split.
const writesOfElections = 120

// TestSlowDisksElectALeader: also where each write of a term takes longer than the election
// timeout, a leader that is lost is replaced, and nodes that start together elect one.
func TestSlowDisksElectALeader(t *testing.T) {
	for _, write := range []time.Duration{120 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprintf("write=%v/cold=%v", write, cold), func(t *testing.T) {
				inCluster(t, 3, func(w *world, c *client) {
					nodes := w.founders()
					for _, s := range nodes {
						// Half of it at least, so all writes together take what is said.
						s.disk.change(func(f *diskFaults) { f.latency = write * 4 / 3 })
					}
					for range 3 {
						lost := nodes
						if !cold {
							lost = []*server{c.leader(t)}
						}
						for _, s := range lost {
							s.current().kill(false)
						}
						gap := c.untilTaken()
						t.Logf("the next identity came after %v", gap)
						if gap > writesOfElections*write {
							t.Errorf("that is more than %v", writesOfElections*write)
						}
						time.Sleep(settling)
					}
				})
			})
		}
	}
}

// TestASlowLeaderServes: a leader whose disk takes more than half a second for each write leads
// on where the others cannot elect another, and gives leadership away where they can.
func TestASlowLeaderServes(t *testing.T) {
	for _, tt := range []struct {
		name        string
		nodes, down int
		elections   uint64
	}{
		{"two nodes", 2, 0, 0},
		{"one of three is down", 3, 1, 0},
		{"two of five are down", 5, 2, 0},
		{"one of five is down", 5, 1, 1},
		{"all are up", 3, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, tt.nodes, func(w *world, c *client) {
				leader := c.leader(t)
				others := slices.DeleteFunc(slices.Clone(w.founders()), func(s *server) bool { return s == leader })
				for _, s := range others[:tt.down] {
					defer s.hold()()
					s.current().kill(false)
				}
				time.Sleep(settling)
				asked := others[tt.down]
				before := c.status(t, asked).GetTerm()
				leader.disk.change(func(f *diskFaults) { f.latency = 1200 * time.Millisecond })
				answered, end := 0, time.Now().Add(20*time.Second)
				for time.Now().Before(end) {
					if c.take(w.ctx, asked) {
						answered++
					}
					time.Sleep(betweenTries)
				}
				if answered < 10 {
					t.Errorf("%d calls were answered", answered)
				}
				if elections := c.status(t, asked).GetTerm() - before; elections != tt.elections {
					t.Errorf("%d elections, want %d", elections, tt.elections)
				}
				leader.disk.change(func(f *diskFaults) { f.latency = 0 })
			})
		})
	}
}

// leader returns the node that leads.
func (c *client) leader(t *testing.T) *server {
	t.Helper()
	nodes := c.world.founders()
	tag := c.status(t, nodes[0]).GetLeaderTag()
	i := slices.IndexFunc(nodes, func(s *server) bool { return s.tag() == tag })
	if i < 0 {
		t.Fatalf("node %s knows no leader", nodes[0].host)
	}
	return nodes[i]
}

// untilTaken returns how long it takes until any node gives an identity, five minutes at most.
func (c *client) untilTaken() time.Duration {
	begin := time.Now()
	for time.Since(begin) < 5*time.Minute {
		for _, s := range c.world.founders() {
			if c.take(c.world.ctx, s) {
				return time.Since(begin)
			}
			time.Sleep(betweenTries)
		}
	}
	return time.Since(begin)
}
