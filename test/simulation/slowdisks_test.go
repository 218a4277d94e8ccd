package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/test/tier"
)

// betweenTries is time, without which a node that is down would be asked forever.
const betweenTries = 10 * time.Millisecond

// writesOfElections is how many writes, one after another, may pass until there is a leader
// and an identity: those of the start of a node, of two elections, and of what the leader
// writes before the identity.
const writesOfElections = 40

// TestSlowDisksElectALeader: also where each write of a term takes longer than the election
// timeout, a leader that is lost is replaced, and nodes that start together elect one; also
// where only the voter is slow whose vote the candidate needs.
func TestSlowDisksElectALeader(t *testing.T) {
	tier.Long(t)
	for _, write := range []time.Duration{120 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond} {
		for _, tt := range []struct {
			name        string
			cold, quick bool
			// rest is the longest time between two processes.
			rest time.Duration
		}{
			{name: "lost leader"},
			{name: "cold start", cold: true, rest: 3 * time.Second},
			{name: "a quick candidate", quick: true},
		} {
			t.Run(fmt.Sprintf("write=%v/%s", write, tt.name), func(t *testing.T) {
				inCluster(t, 3, func(w *world, c *client) {
					for range 3 {
						leader := c.leader(t)
						others := w.othersThan(leader)
						for _, s := range w.founders() {
							// Half of it at least, so all writes together take what is said.
							s.disk.change(func(f *diskFaults) { f.latency = write * 4 / 3 })
						}
						if tt.quick {
							others[0].disk.change(func(f *diskFaults) { f.latency = 0 })
						}
						begin, back := time.Now(), leader.hold()
						leader.current().kill(false)
						if tt.cold {
							back()
							for _, s := range others {
								s.current().kill(false)
							}
						}
						c.untilTaken()
						gap := time.Since(begin)
						t.Logf("the next identity came after %v", gap)
						if gap > writesOfElections*write+tt.rest {
							t.Errorf("that is more than %v", writesOfElections*write+tt.rest)
						}
						back()
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
	tier.Long(t)
	for _, tt := range []struct {
		name              string
		nodes, down, slow int
		write             time.Duration
		least, most       uint64 // elections
		answered          int
	}{
		{"two nodes", 2, 0, 0, 900 * time.Millisecond, 0, 0, 8}, // A call takes a write of each, one after another.
		{"one of three is down", 3, 1, 0, 900 * time.Millisecond, 0, 0, 10},
		{"two of five are down", 5, 2, 0, 900 * time.Millisecond, 0, 0, 10},
		{"one of five is down", 5, 1, 0, 900 * time.Millisecond, 1, 1, 10},
		{"all are up", 3, 0, 0, 900 * time.Millisecond, 1, 1, 10},
		// Before they write, the others count as quick: which is chosen first, whether writes of less than a
		// second ever count as slow, and so whether the leader leads on, is chance.
		{"another of three is slow", 3, 0, 1, 700 * time.Millisecond, 0, 5, 5},
		{"all of three are slow", 3, 0, 2, 700 * time.Millisecond, 0, 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, tt.nodes, func(w *world, c *client) {
				leader := c.leader(t)
				others := w.othersThan(leader)
				for _, s := range others[:tt.down] {
					defer s.hold()()
					s.current().kill(false)
				}
				time.Sleep(settling)
				asked := others[tt.down]
				before := c.status(t, asked).GetTerm()
				for _, s := range append(others[len(others)-tt.slow:], leader) {
					s.disk.change(func(f *diskFaults) { f.latency = tt.write * 4 / 3 })
				}
				answered, end := 0, time.Now().Add(20*time.Second)
				for time.Now().Before(end) {
					if c.take(w.ctx, asked) {
						answered++
					}
					time.Sleep(betweenTries)
				}
				elections := c.status(t, asked).GetTerm() - before
				t.Logf("%d calls were answered, %d elections", answered, elections)
				if answered < tt.answered || elections < tt.least || elections > tt.most {
					t.Errorf("want %d calls at least, and %d to %d elections", tt.answered, tt.least, tt.most)
				}
				for _, s := range w.founders() {
					s.disk.change(func(f *diskFaults) { f.latency = 0 })
				}
			})
		})
	}
}

// TestSlowFollowersAreServed: a leader that needs followers whose disks take more than half a
// second for each write leads on.
func TestSlowFollowersAreServed(t *testing.T) {
	inCluster(t, 3, func(w *world, c *client) {
		leader := c.leader(t)
		before := c.status(t, leader).GetTerm()
		for _, s := range w.othersThan(leader) {
			s.disk.change(func(f *diskFaults) { f.latency = 950 * time.Millisecond })
		}
		answered, end := 0, time.Now().Add(20*time.Second)
		for time.Now().Before(end) {
			if c.take(w.ctx, leader) {
				answered++
			}
			time.Sleep(betweenTries)
		}
		if answered < 15 {
			t.Errorf("%d calls were answered", answered)
		}
		if after := c.status(t, leader).GetTerm(); after != before {
			t.Errorf("term %d follows %d", after, before)
		}
		for _, s := range w.founders() {
			s.disk.change(func(f *diskFaults) { f.latency = 0 })
		}
	})
}

// TestALeaderOfHungFollowersStepsDown: heartbeats that are answered during a write that does
// not end are no reason to lead.
func TestALeaderOfHungFollowersStepsDown(t *testing.T) {
	inCluster(t, 3, func(w *world, c *client) {
		leader := c.leader(t)
		hung := time.Now().Add(20 * time.Second)
		for _, s := range w.othersThan(leader) {
			s.disk.change(func(f *diskFaults) { f.stallUntil = hung })
		}
		if c.take(w.ctx, leader) {
			t.Error("an identity that no follower has written")
		}
		time.Sleep(5 * time.Second)
		if tag := c.status(t, leader).GetLeaderTag(); tag != "" {
			t.Errorf("%s leads", tag)
		}
		time.Sleep(time.Until(hung))
		if gap := c.untilTaken(); gap > 10*time.Second {
			t.Errorf("the next identity came %v after the disks", gap)
		}
	})
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

// othersThan returns the nodes without one.
func (w *world) othersThan(node *server) []*server {
	return slices.DeleteFunc(slices.Clone(w.founders()), func(s *server) bool { return s == node })
}
