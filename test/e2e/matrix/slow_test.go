package matrix

import (
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// slowSyncs are how long each sync takes where all disks are slow.
var slowSyncs = []time.Duration{80 * time.Millisecond, 150 * time.Millisecond, 220 * time.Millisecond}

// callersOfSlow are further callers of each node where every call waits for a slow disk.
const callersOfSlow = 32

// TestF31AllDisksSlow kills all nodes, which come back on slow disks, and then their leader: the next
// one is found within 10 s.
func TestF31AllDisksSlow(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	r.more()
	r.traffic.Thick(t)
	killAll(r.c)
	for i, n := range r.c.Nodes {
		n.SlowDisk(t, slowSyncs[i])
	}
	r.restart(t, r.c.Nodes...)
	for i := range r.cycles(t, 1, 100) {
		leader := r.c.Leader(t)
		r.traffic.Thick(t)
		leader.Process.Kill()
		r.failsOver(t, r.c.Others(leader)[i%2])
		r.restart(t, leader)
	}
	r.inTime(t, 5*time.Second, 10*time.Second, 10*time.Second)
	r.ends(t)
}

// more adds callers on all nodes.
func (r *row) more() {
	for _, n := range r.c.Nodes {
		r.traffic.Add(n, callersOfSlow)
	}
}

// TestF32SlowLeaderOneDown kills a follower and makes every sync of the leader slow: no
// other node could lead, so it serves on, and calls no election.
func TestF32SlowLeaderOneDown(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	r.more()
	for i := range r.cycles(t, 1, 40) {
		leader := r.c.Leader(t)
		down := r.c.Others(leader)[i%2]
		r.traffic.Thick(t)
		term := highestTerm(r.c)
		r.Outage()
		down.Process.Kill() // It answered the leader a moment ago.
		release := leader.Process.StallDisk(t, 700*time.Millisecond)
		r.traffic.Thick(t)
		r.traffic.Thick(t)
		if outage := r.Outage(); outage > within(4*time.Second) {
			t.Errorf("nothing was answered for %s", outage)
		}
		if n := highestTerm(r.c) - term; n > 1 {
			t.Errorf("there were %d elections, which no other node could win", n)
		}
		release()
		r.restart(t, down)
	}
	r.ends(t)
}
