package matrix

import (
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestF34AllAddressesChange kills all nodes and starts them at other addresses, with lists that
// are right: they find each other.
func TestF34AllAddressesChange(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{Direct: true}, deadline)
	for range r.cycles(t, 2, 50) {
		r.traffic.Thick(t)
		r.traffic.Stop() // Later callers know the new addresses.
		killAll(r.c)
		for _, n := range r.c.Nodes {
			n.Move(t)
		}
		r.restart(t, r.c.Nodes...)
		r.traffic = r.Start(t, deadline)
	}
	r.ends(t)
}

// TestF35NamesUnresolved kills the leader while look-ups are refused or hang: the other nodes elect
// the next one, and the killed one comes back.
func TestF35NamesUnresolved(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{Direct: true, Domain: "idnode.test"})
	names := c.OwnNames(t)
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	for i := range r.cycles(t, 2, 100) {
		leader := c.Leader(t)
		r.traffic.Thick(t)
		names.Become([]harness.Lookups{harness.Refused, harness.Hanging}[i%2])
		leader.Process.Kill()
		r.failsOver(t, c.Others(leader)[i/2%2])
		r.traffic.Thick(t)
		r.restart(t, leader)
		names.Become(harness.Answered)
	}
	r.inTime(t, 2*time.Second, 5*time.Second, 10*time.Second)
	r.ends(t)
}
