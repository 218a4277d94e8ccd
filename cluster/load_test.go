package cluster_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/tier"
)

// TestNoElectionUnderLoad keeps all nodes busy: nobody loses the quorum, and the
// leader stays. IDNODE_TEST_LOAD is how many seconds; by default it is short. The timings
// outlast a machine that stands still for half a second, which is no load of the nodes.
func TestNoElectionUnderLoad(t *testing.T) {
	tier.Long(t)
	seconds, callers := 2, 48
	if s := os.Getenv("IDNODE_TEST_LOAD"); s != "" {
		seconds, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("IDNODE_TEST_CALLERS"); s != "" {
		callers, _ = strconv.Atoi(s)
	}
	n := startNetwork(t, 3, func(c *cluster.Config) {
		c.Heartbeat = orDefault(time.Second)
	})
	n.servers[0].mustNext("users")
	for _, s := range n.servers {
		eventually(t, "quorum", s.node.HasQuorum)
	}
	term := n.leader().node.Status().Term
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	alarms := make(chan string, 3)
	for _, s := range n.servers {
		changed := s.node.QuorumChanges()
		go func() {
			select {
			case <-changed:
				alarms <- s.tag
			case <-ctx.Done():
			}
		}()
	}
	l := startLoad(t, callers, n.servers...)
	select {
	case tag := <-alarms:
		t.Errorf("%s thought it had lost the quorum", tag)
	case <-time.After(time.Duration(seconds) * time.Second):
	}
	l.end(t)
	cancel()
	for _, err := range l.failures {
		t.Errorf("a call failed: %v", err)
	}
	if now := n.leader().node.Status().Term; now != term {
		t.Errorf("the term went from %d to %d without a fault", term, now)
	}
}
