package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/idnode/idnode/cluster"
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
		if !before.MembersAt.Equal(after.MembersAt) || before.Applied == after.Applied {
			return false
		}
		if d := cmp.Diff(before.Members, after.Members, cmpopts.IgnoreFields(cluster.MemberStatus{}, "Member")); d != "" {
			t.Errorf("of the same moment (-before +after):\n%s", d)
		}
		return true
	})
}

// TestStatsReachTheOthers: what a node tells of its last seconds is seen on another;
// of one that tells nothing nothing is.
func TestStatsReachTheOthers(t *testing.T) {
	t.Parallel()
	told := cluster.Stats{IdentitiesPerSecond: 1.5, IDsPerSecond: 20, CommitP99: 3 * time.Millisecond, WriteP99: 40 * time.Microsecond}
	n := newNetwork(t, 3)
	for i, s := range n.servers {
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			c.FreeBytes = func() (uint64, error) { return 1 << 40, nil }
			if i > 0 {
				c.Stats = func() cluster.Stats { return told }
			}
		})
	}
	startAll(n.servers...)
	want := told
	want.FreeBytes = 1 << 40
	for _, s := range n.servers {
		var members []cluster.MemberStatus
		eventually(t, s.tag+" has heard all", func() bool {
			members = s.node.Status().Members
			return len(members) == 3 && members[0].Reachable && members[1].Reachable && members[2].Reachable
		})
		for i, m := range members {
			if got := m.Stats; (got != nil) != (i > 0) || got != nil && *got != want {
				t.Errorf("%s says of %s: %+v", s.tag, m.Member.GetTag(), got)
			}
		}
	}
}
