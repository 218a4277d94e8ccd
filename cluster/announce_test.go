package cluster_test

import (
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAnAnnouncementIsAppliedHereFirst: a node that counts as announced has in its own
// state what the cluster had set before, such as how many databases may have
// server-side ids (seed 2739 of the simulation).
func TestAnAnnouncementIsAppliedHereFirst(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 3)
	type announced struct {
		tag              string
		applied, session uint64
	}
	seen := make(chan announced, 10*len(n.servers))
	for _, s := range n.servers {
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			c.OnAnnounce = func(r *raftlogv1.MemberResult) {
				seen <- announced{s.tag, s.state.AppliedIndex(), r.GetSession()}
			}
		})
	}
	startAll(n.servers...)
	for range n.servers {
		select {
		case a := <-seen:
			if a.applied < a.session {
				t.Errorf("%s was announced at entry %d, and its state is at %d", a.tag, a.session, a.applied)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("not all nodes were announced")
		}
	}
}
