package disaster

import (
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestAllAddressesChange: all nodes are stopped and come back at other addresses, with lists
// that are right: they find each other, also after a recovery. A recovery does not take
// members for lost that answer at addresses on its list.
func TestAllAddressesChange(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{Direct: true})
	a, rest := c.Nodes[0], c.Nodes[1:]
	last := nextOf(t, a)
	move := func() {
		for _, n := range c.Nodes {
			n.Process.Stop(t)
			n.Move(t)
		}
	}
	move()
	for _, n := range rest {
		n.Start(t)
	}
	c.WaitReady(t)
	alone := []string{"recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "0", "--yes"}
	for _, n := range rest {
		alone = append(alone, "--peer", n.Tag+"="+n.GRPC)
	}
	if why := refused(t, 1, alone...); !strings.Contains(why, "majority") {
		t.Errorf("refused with %s", why)
	}
	a.Start(t)
	c.WaitReady(t)
	if got := nextOf(t, a); got != last+1 {
		t.Errorf("after %d came %d", last, got)
	}

	move()
	for _, n := range c.Nodes {
		must(t, "recover", "--data-dir", n.DataDir, "--members", "A,B,C", "--skip-ahead", "0", "--yes")
	}
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	if got := nextOf(t, a); got != last+2 {
		t.Errorf("after %d came %d", last+1, got)
	}
}
