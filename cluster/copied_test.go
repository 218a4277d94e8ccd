package cluster_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
)

// TestCopiedDirectoryEnds runs a copy of a node's data directory beside the node:
// two processes of one id could vote twice, so the one that is not at the node's
// address ends.
func TestCopiedDirectoryEnds(t *testing.T) {
	n := startNetwork(t, 3)
	// It asks for votes before it can say that the node has moved.
	s, twin := startTwin(t, n, 100*time.Millisecond)
	wantImpostor(t, twin)
	s.mustNext("users")
}

// TestCopiedDirectoryMoves is the same with a copy that tells the cluster its own
// addresses first: then it is the node, and the original ends, though it has
// connections to the others from before.
func TestCopiedDirectoryMoves(t *testing.T) {
	n := startNetwork(t, 3)
	s, twin := startTwin(t, n, 30*time.Second)
	wantImpostor(t, s)
	twin.mustNext("users")
}

// startTwin restarts a follower, and starts a node on a copy of its directory.
func startTwin(t *testing.T, n *network, heartbeat time.Duration) (s, twin *server) {
	t.Helper()
	s = n.others(n.leader())[0]
	s.mustNext("users")
	s.stop(true)
	twin = newServer(t, s.tag)
	if err := os.CopyFS(twin.dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	n.run(s)
	s.mustNext("users")
	twin.open(func(c *cluster.Config) {
		c.PeerList, c.Timings = n.peers, cluster.Timings{Heartbeat: heartbeat}
	})
	t.Cleanup(func() { twin.stop(true) })
	twin.start()
	return s, twin
}

func wantImpostor(t *testing.T, s *server) {
	t.Helper()
	select {
	case <-s.node.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("both processes of the same node go on")
	}
	if err := s.node.Err(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the impostor ended with %v", err)
	}
}
