package cluster_test

import (
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
)

// TestThreeNodesOnBolt keeps the log in raft.db, which is not the default any more,
// and has snapshots, compaction, a node that is behind the
// others' logs, and a leader that falls.
func TestThreeNodesOnBolt(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 3)
	open := func(s *server) {
		s.open(func(c *cluster.Config) {
			c.PeerList, c.LogStore = n.peers, "bolt"
			c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 20*time.Millisecond, 5, 1
		})
	}
	for _, s := range n.servers {
		open(s)
	}
	startAll(n.servers...)
	last := int64(0)
	take := func(s *server) {
		t.Helper()
		for range 40 {
			v := s.mustNext("users")
			if v <= last {
				t.Fatalf("%d after %d", v, last)
			}
			last = v
		}
	}
	behind := n.others(n.leader())[0]
	take(n.leader())
	behind.stop(true)
	take(n.leader())
	open(behind)
	behind.start()
	n.agree()
	fallen := n.leader()
	fallen.stop(true)
	take(n.leader())
	open(fallen)
	fallen.start()
	n.agree()
	take(fallen)
}
