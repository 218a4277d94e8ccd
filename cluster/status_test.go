package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/disk"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// TestMembersAreOfOneMoment: how the members are was asked at one time, of the node
// itself too, so that nobody seems to be behind whose answer is only older.
func TestMembersAreOfOneMoment(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	leader := n.leader()
	eventually(t, "a change between two looks at one round", func() bool {
		before := leader.node.Status()
		leader.mustNext("users")
		after := leader.node.Status()
		if !before.MembersAt.Equal(after.MembersAt) || before.Commit == after.Commit {
			return false
		}
		if d := cmp.Diff(before.Members, after.Members, protocmp.Transform(), cmpopts.IgnoreFields(cluster.MemberStatus{}, "Member")); d != "" {
			t.Errorf("of the same moment (-before +after):\n%s", d)
		}
		return true
	})
}

// TestFiguresReachTheOthers: what a node tells of its last seconds is seen on another;
// of one that tells nothing nothing is.
func TestFiguresReachTheOthers(t *testing.T) {
	t.Parallel()
	told := &peerv1.Figures{IdentitiesPerSecond: 1.5, IdsPerSecond: 20, CommitP99Micros: 3000, WriteP99Micros: 40}
	n := newNetwork(t, 3)
	for i, s := range n.servers {
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			c.Room = func() (disk.Room, error) { return disk.Room{Bytes: 1 << 40}, nil }
			if i > 0 {
				c.Figures = func() *peerv1.Figures { return proto.CloneOf(told) }
			}
		})
	}
	startAll(n.servers...)
	want := proto.CloneOf(told)
	want.FreeBytes = 1 << 40
	for _, s := range n.servers {
		var members []cluster.MemberStatus
		eventually(t, s.tag+" has heard all", func() bool {
			members = s.node.Status().Members
			return len(members) == 3 && members[0].Condition != nil && members[1].Condition != nil && members[2].Condition != nil
		})
		for i, m := range members {
			if got := m.Condition.GetFigures(); (got != nil) != (i > 0) || got != nil && !proto.Equal(got, want) {
				t.Errorf("%s says of %s: %+v", s.tag, m.Member.GetTag(), got)
			}
		}
	}
}
