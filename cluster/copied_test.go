package cluster_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
)

// TestCopiedDirectoryEnds runs a copy of a node's data directory beside the node:
// two processes of one id could vote twice, so the one that is not at the node's
// address ends.
func TestCopiedDirectoryEnds(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	s, twin := copied(t, n)
	n.run(s)
	s.mustNext("users")
	// It asks for votes before it can say that the node has moved.
	openTwin(n, twin, 100*time.Millisecond)
	twin.startDoomed()
	wantImpostor(t, twin)
	s.mustNext("users")
}

// TestCopiedDirectoryMoves starts the copy alone, at other addresses: then it is the
// node, and the original ends when it is started after all.
func TestCopiedDirectoryMoves(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	s, twin := copied(t, n)
	openTwin(n, twin, testHeartbeat)
	twin.start()
	twin.mustNext("users")
	s.open(func(c *cluster.Config) { c.PeerList = n.peers })
	s.startDoomed()
	wantImpostor(t, s)
	twin.mustNext("users")
}

// copied stops a follower and returns a server on a copy of its directory.
func copied(t *testing.T, n *network) (s, twin *server) {
	t.Helper()
	s = n.others(n.leader())[0]
	s.mustNext("users")
	s.stop(true)
	twin = newServer(t, s.tag)
	if err := os.CopyFS(twin.dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { twin.stop(true) })
	return s, twin
}

func openTwin(n *network, twin *server, heartbeat time.Duration) {
	n.t.Helper()
	twin.open(func(c *cluster.Config) {
		c.PeerList, c.Heartbeat = n.peers, heartbeat
	})
}

func wantImpostor(t *testing.T, s *server) {
	t.Helper()
	select {
	case <-s.node.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("both processes of the same node go on")
	}
	// Those that do not know the copy's new address yet see that the number of this
	// start was taken.
	if err := s.node.Err(); err == nil || !strings.Contains(err.Error(), "another process") && !errors.Is(err, member.ErrSetBack) {
		t.Errorf("the impostor ended with %v", err)
	}
}
