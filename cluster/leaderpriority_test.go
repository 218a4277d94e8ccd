package cluster_test

import (
	"strings"
	"testing"

	"github.com/idnode/idnode/cluster"
)

// TestLeaderPriority: the node with the greatest priority leads, another one while it is
// away, and it again when it is back; the one with 0 never.
func TestLeaderPriority(t *testing.T) {
	priorities := map[string]uint32{"A": 0, "B": 1, "C": 2}
	n := startNetwork(t, 3, func(c *cluster.Config) { c.LeaderPriority = priorities[c.Tag] })
	a, b, c := n.servers[0], n.servers[1], n.servers[2]
	leads := func(s *server) {
		t.Helper()
		eventually(t, "leadership of "+s.tag, func() bool { return n.leader() == s })
	}
	leads(c)
	if _, err := c.transfer(a.tag); err == nil || !strings.Contains(err.Error(), "leader-priority 0") {
		t.Errorf("a transfer to the node that shall not lead: %v", err)
	}
	c.stop(false)
	leads(b)
	b.mustNext("users")
	n.run(c)
	leads(c)
	c.mustNext("users")
	n.agree()
}
