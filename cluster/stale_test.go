package cluster_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/test/tier"
)

// TestLeaderUnknownToReturningNode brings a node back that was away while the present
// leader joined: it must not refuse that leader permanently because its own table, which
// only the leader can bring up to date, does not have it. It comes back at other
// addresses, so that nobody who led before can still reach it.
func TestLeaderUnknownToReturningNode(t *testing.T) {
	tier.Long(t)
	n := startNetwork(t, 3, patient)
	n.servers[0].mustNext("users")
	away := n.others(n.leader())[0]
	away.stop(true)
	d := joinAndLead(t, n)
	away.grpc, away.raft = freeport.For(t), freeport.For(t)
	away.open(func(c *cluster.Config) { c.PeerList = n.peers })
	away.start()
	wantCaughtUp(t, away, d)
}

// TestLeaderUnknownToSnapshot restarts a node whose newest snapshot is older than
// the present leader: until it is told what is committed, its state is that of
// the snapshot.
func TestLeaderUnknownToSnapshot(t *testing.T) {
	tier.Long(t)
	n := newNetwork(t, 3, patient)
	for _, s := range n.servers {
		s.open(func(c *cluster.Config) {
			c.PeerList, c.SnapshotThreshold, c.SnapshotInterval = n.peers, 20, 50*time.Millisecond
		})
	}
	startAll(n.servers...)
	for range 40 {
		n.servers[0].mustNext("users")
	}
	old := n.others(n.leader())[0]
	eventually(t, "snapshot", func() bool {
		entries, err := os.ReadDir(filepath.Join(old.dir, "snapshots"))
		return err == nil && len(entries) > 0
	})
	again := func() {
		old.stop(true)
		old.open(func(c *cluster.Config) { c.PeerList = n.peers })
		old.start()
	}
	again()
	d := joinAndLead(t, n)
	wantCaughtUp(t, old, d)
	again()
	wantCaughtUp(t, old, d)
}

// joinAndLead lets D join and lead.
func joinAndLead(t *testing.T, n *network) *server {
	t.Helper()
	through := n.leader()
	d := newServer(t, "")
	d.tune = through.tune
	d.open(func(c *cluster.Config) { c.Join = []string{through.grpc} })
	d.start()
	d.tag = "D"
	n.servers = append(n.servers, d)
	eventually(t, "vote for the newcomer", func() bool { return votes(d, "D") })
	n.leads(d)
	d.mustNext("users")
	return d
}

// wantCaughtUp waits until the node has the leader's state, under that leader.
func wantCaughtUp(t *testing.T, s, leader *server) {
	t.Helper()
	eventually(t, "the leader's state", func() bool {
		at, hash := leader.state.Hash()
		i, h := s.state.Hash()
		return i == at && h == hash
	})
	if !leads(leader) {
		t.Errorf("%s does not lead any more: the test shows nothing", leader.tag)
	}
}
