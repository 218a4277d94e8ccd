package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/tier"
)

// seated is s with its own directory, at the place of another server and with the
// configuration of that place.
func (s *server) seated(at *server) *server {
	seated := *s
	seated.grpc, seated.raft, seated.node = at.grpc, at.raft, nil
	return &seated
}

// run starts a server with the configuration that it is given, and ends it with the test.
func (s *server) run(change func(*cluster.Config)) {
	s.t.Helper()
	s.open(change)
	s.t.Cleanup(func() { s.stop(true) })
	s.startDoomed()
}

// endsAsForeign waits until the server has ended because it belongs to another cluster
// than the servers that it was given, and both clusters are named.
func (s *server) endsAsForeign(own, other []byte) {
	s.t.Helper()
	eventually(s.t, "end of "+s.tag, func() bool { return s.node.Err() != nil })
	err := s.node.Err()
	if !errors.Is(err, member.ErrOtherCluster) {
		s.t.Fatalf("%s ended with %v", s.tag, err)
	}
	for _, id := range [][]byte{own, other} {
		if !strings.Contains(err.Error(), fmt.Sprintf("%x", id)) {
			s.t.Errorf("%v does not name the cluster %x", err, id)
		}
	}
}

// goesOn checks that all of the network's servers that run serve, and none has ended.
func (n *network) goesOn() {
	n.t.Helper()
	n.leader()
	for _, s := range n.servers {
		if s.node == nil {
			continue
		}
		s.eventuallyNext("orders")
		if err := s.node.Err(); err != nil {
			n.t.Errorf("%s ended: %v", s.tag, err)
		}
	}
}

// TestAnotherClustersDirectory starts a node with the directory of one cluster at the
// address, and with the list, of a node of another. It ends before its own cluster
// hears of the new address: callers of the other would get ids of both.
func TestAnotherClustersDirectory(t *testing.T) {
	tier.Long(t)
	for name, list := range map[string]func(*cluster.Config, *network){
		"by a list of peers": func(c *cluster.Config, n *network) { c.PeerList = n.peers },
		"by addresses to join through": func(c *cluster.Config, n *network) {
			c.Join = slices.Sorted(maps.Values(n.peers))
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := startNetwork(t, 3), startNetwork(t, 3)
			mine, theirs := own.servers[2], other.servers[2]
			own.goesOn()
			home := mine.grpc
			ownID, otherID := mine.node.ClusterID(), theirs.node.ClusterID()
			mine.stop(false)
			theirs.stop(false)

			lost := mine.seated(theirs)
			lost.run(func(c *cluster.Config) { list(c, other) })
			lost.endsAsForeign(ownID, otherID)
			own.goesOn()
			other.goesOn()
			for _, m := range own.servers[0].node.Status().Members {
				if m.Member.GetTag() == mine.tag && m.Member.GetGrpcAddress() != home {
					t.Errorf("the cluster was told that %s is at %s", mine.tag, m.Member.GetGrpcAddress())
				}
			}
		})
	}
}

// TestAnotherClustersDirectoryInAColdStart: who is asked comes up later than who asks,
// so asking goes on. The node that is at the wrong place ends, and not those that
// belong there.
func TestAnotherClustersDirectoryInAColdStart(t *testing.T) {
	tier.Long(t)
	own, other := startNetwork(t, 3), startNetwork(t, 3)
	mine, theirs := own.servers[0], other.servers[0]
	ownID, otherID := mine.node.ClusterID(), theirs.node.ClusterID()
	for _, s := range append(own.servers, other.servers...) {
		s.stop(false)
	}
	lost := mine.seated(theirs)
	lost.run(func(c *cluster.Config) { c.PeerList = other.peers })
	if err := lost.node.Err(); err != nil {
		t.Fatalf("it ended before anybody could be asked: %v", err)
	}
	other.run(other.servers[1:]...)
	lost.endsAsForeign(ownID, otherID)
	lost.stop(true)
	other.goesOn()
}

// TestAForeignNodeAmongThoseListed: a node whose list is its own cluster's, as other
// members say, or as its own table of members says, does not end because of one
// address behind which a node of another cluster answers.
func TestAForeignNodeAmongThoseListed(t *testing.T) {
	tier.Long(t)
	own, stranger := startNetwork(t, 3, patient), startNetwork(t, 1)
	a, b := own.servers[0], own.servers[1]
	withForeign := func(c *cluster.Config, tag string) {
		c.PeerList = maps.Clone(own.peers)
		c.PeerList[tag] = stranger.servers[0].grpc
	}

	a.stop(false)
	a.open(func(c *cluster.Config) { withForeign(c, "C") })
	a.start()
	eventually(t, "warning that names the other cluster", func() bool {
		return strings.Contains(strings.Join(a.node.Status().Warnings, " "), fmt.Sprintf("%x", stranger.servers[0].node.ClusterID()))
	})
	own.goesOn()

	if _, err := a.node.RemoveMember(t.Context(), "C", false, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of C", func() bool { return own.servers[2].node.Err() != nil })
	for _, s := range []*server{a, b} {
		eventually(t, "removal in the record of "+s.tag, func() bool {
			r, err := member.Load(s.dir)
			return err == nil && slices.ContainsFunc(r.Members, func(m *raftlogv1.Member) bool { return m.GetTag() == "C" && m.GetRemoved() })
		})
	}
	own.servers[2].stop(true)
	b.stop(false)
	a.stop(false)
	a.open(func(c *cluster.Config) { withForeign(c, "C") })
	a.start()
	b.open(func(c *cluster.Config) { withForeign(c, "C") })
	b.start()
	own.goesOn()
}

// TestAddressesOfTheListThatAreNobodysAnyMore: members move, one after another, and
// lists stay as they are.
func TestAddressesOfTheListThatAreNobodysAnyMore(t *testing.T) {
	tier.Long(t)
	n := startNetwork(t, 3)
	for _, s := range n.servers {
		s.stop(false)
		moved := newServer(t, s.tag)
		s.grpc, s.raft = moved.grpc, moved.raft
		n.run(s)
		n.goesOn()
	}
}

// TestAForeignNodeBeforeAnyConfirmation: of those listed one is of another cluster and the
// other is silent. The node may be at the wrong place, so it refuses callers, and does
// not end; until its own cluster's quorum is in reach.
func TestAForeignNodeBeforeAnyConfirmation(t *testing.T) {
	tier.Long(t)
	own, stranger := startNetwork(t, 3), startNetwork(t, 1)
	a, silent := own.servers[0], freeport.For(t)
	for _, s := range own.servers {
		s.stop(false)
	}
	a.open(func(c *cluster.Config) {
		c.PeerList = map[string]string{"A": a.grpc, "B": stranger.servers[0].grpc, "C": silent}
	})
	a.start()
	eventually(t, "warning", func() bool { return len(a.node.Warnings()) > 0 })
	if a.node.ClusterCheck() == nil {
		t.Error("the node does not say that it may be at the wrong place")
	}
	_, err := a.next(t.Context(), "orders")
	wantOutcome(t, err, outcome.NotApplied, outcome.Starting)

	own.run(own.servers[1:]...)
	own.goesOn()
	if err := a.node.ClusterCheck(); err != nil {
		t.Errorf("with its own cluster in reach: %v", err)
	}
}

// TestALoneNodeVouchesNotForItself: a cluster of one always has its quorum, so that says
// nothing against another cluster's node among those listed.
func TestALoneNodeVouchesNotForItself(t *testing.T) {
	t.Parallel()
	own, stranger := startNetwork(t, 1), startNetwork(t, 1)
	a, silent := own.servers[0], freeport.For(t)
	a.stop(false)
	a.open(func(c *cluster.Config) { c.Join = []string{stranger.servers[0].grpc, silent} })
	a.start()
	eventually(t, "quorum", a.node.HasQuorum)
	eventually(t, "warning", func() bool { return len(a.node.Warnings()) > 0 })
	_, err := a.next(t.Context(), "orders")
	wantOutcome(t, err, outcome.NotApplied, outcome.Starting)
	if err := a.node.Err(); err != nil {
		t.Errorf("it ended: %v", err)
	}
}

// TestAForeignNodeThatComesLater: the only address that a node was told of is another
// cluster's some day. A node that has been in reach of its quorum goes on.
func TestAForeignNodeThatComesLater(t *testing.T) {
	t.Parallel()
	own, stranger := startNetwork(t, 3), startNetwork(t, 1)
	b, late := own.servers[1], stranger.servers[0]
	late.stop(false)
	b.stop(false)
	b.open(func(c *cluster.Config) { c.Join = []string{late.grpc} })
	b.start()
	own.goesOn()
	stranger.run(late)
	eventually(t, "warning", func() bool { return len(b.node.Warnings()) > 0 })
	own.goesOn()
}
