package matrix

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// unseenSync is how long a sync may take that is not counted as a stall. With a
// follower gone, every call waits for those of the other one.
const unseenSync = 50 * time.Millisecond

// TestF02FollowerKilled kills followers: callers of other nodes do not notice.
func TestF02FollowerKilled(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	var sound, broken []time.Duration
	for i := range r.cycles(t, 8, 200) {
		leader := r.c.Leader(t)
		killed, other := r.c.Others(leader)[i%2], r.c.Others(leader)[1-i%2]
		r.traffic.Thick(t)
		before := []*harness.Watch{r.Watch(leader), r.Watch(other)}
		r.traffic.Thick(t)
		r.traffic.Thick(t)
		sound = append(sound, timesOf(before)...)
		watches := []*harness.Watch{r.Watch(leader), r.Watch(other)}
		killed.Process.Kill()
		r.traffic.Thick(t)
		r.traffic.Thick(t)
		broken = append(broken, timesOf(watches)...)
		r.restart(t, killed)
		r.traffic.Thick(t)
		for _, w := range watches {
			if n := w.Seen().Refused; n > 0 {
				t.Errorf("%d calls on other nodes failed when a follower was killed", n)
			}
		}
	}
	usual, then := harness.QuantileOfTimes(sound, 990), harness.QuantileOfTimes(broken, 990)
	t.Logf("p99 of %d calls while all nodes ran: %s; of %d after a follower was killed: %s", len(sound), usual, len(broken), then)
	if then > within(2*usual)+unseenSync {
		t.Errorf("p99 of the calls on other nodes was %s after a follower was killed, and %s before", then, usual)
	}
	r.ends(t)
}

// timesOf returns how long the calls took that they saw.
func timesOf(watches []*harness.Watch) []time.Duration {
	var all []time.Duration
	for _, w := range watches {
		all = append(all, w.Times()...)
	}
	return all
}

// TestF03AllKilled kills every node at once: nothing that was acknowledged is lost
// or comes again, and server-side ids go on above.
func TestF03AllKilled(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for range r.cycles(t, 4, 500) {
		r.traffic.Thick(t)
		killAll(r.c)
		r.restart(t, r.c.Nodes...)
	}
	r.ends(t)
}

// killAll kills every node at the same moment.
func killAll(c *harness.Cluster) {
	var killed sync.WaitGroup
	for _, n := range c.Nodes {
		killed.Go(n.Process.Kill)
	}
	killed.Wait()
}

// TestF14PowerLost takes the power from one node after the other and from all of
// them, again and again: what was not synced is gone from their disks, and nothing
// that was acknowledged.
func TestF14PowerLost(t *testing.T) {
	c := harness.NewCluster(t, harness.Config{Tuning: snapshotOften})
	c.OwnDisks(t)
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	random := r.Random(0)
	lost, forgot := 0, 0
	for i := range r.cycles(t, 4, 500) {
		r.traffic.Thick(t)
		nodes := c.Nodes
		if i%2 == 0 {
			nodes = []*harness.Node{c.Nodes[random.IntN(len(c.Nodes))]}
		}
		lost += len(nodes)
		forgot += harness.LosePower(t, nodes...)
		r.restart(t, nodes...)
	}
	r.ends(t)
	r.figures.note = fmt.Sprintf("%d of %d disks forgot what was not synced", forgot, lost)
	t.Log(r.figures.note)
	if forgot*10 < lost*8 {
		t.Errorf("only %s", r.figures.note)
	}
}
