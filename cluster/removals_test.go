package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestTwoRemovalsAtOnceAreJudgedOneAfterTheOther: with one of four voters down, either of
// two others can be removed, and not both: the two that remained would be no majority. So
// it is from the moment that the cluster has a leader, who may not know any member yet.
func TestTwoRemovalsAtOnceAreJudgedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 4)
	n.run(n.servers...)
	leader := n.leader()
	others := n.others(leader)
	others[2].stop(true)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var removals sync.WaitGroup
	for _, s := range others[:2] {
		removals.Go(func() {
			if _, err := leader.node.RemoveMember(ctx, s.tag, false, nil); err != nil {
				t.Logf("removing %s: %v", s.tag, err)
			}
		})
	}
	removals.Wait()
	var removed []string
	for _, m := range leader.state.Members() {
		if m.GetRemoved() {
			removed = append(removed, m.GetTag())
		}
	}
	// On a busy machine both may be refused.
	if len(removed) > 1 {
		t.Errorf("removed: %v", removed)
	}
}

// slowTable is the table of members of a node that learns of no removal for a while.
type slowTable struct {
	cluster.Registry
	slow atomic.Bool
}

// Members implements cluster.Registry.
func (s *slowTable) Members() []*raftlogv1.Member {
	members := s.Registry.Members()
	for _, m := range members {
		m.Removed = m.GetRemoved() && !s.slow.Load()
	}
	return members
}

// TestARemovedVoterVotesUntilItIsOutOfRaftsConfiguration: one of four voters is removed, and
// the leader is cut off before Raft's configuration follows the table. Of the four that count,
// the removed one is needed for a majority, also if it starts again in that moment.
func TestARemovedVoterVotesUntilItIsOutOfRaftsConfiguration(t *testing.T) {
	for name, restarts := range map[string]bool{"it runs on": false, "it starts again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tables := map[string]*slowTable{}
			n := startNetwork(t, 4, func(c *cluster.Config) {
				tables[c.Tag] = &slowTable{Registry: c.Registry}
				c.Registry = tables[c.Tag]
			})
			n.servers[0].mustNext("users")
			leader := n.leader()
			tables[leader.tag].slow.Store(true)
			stays, removed := n.others(leader)[0], n.others(leader)[2]
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			var removal sync.WaitGroup
			defer removal.Wait()
			defer cancel()
			removal.Go(func() { _, _ = stays.node.RemoveMember(ctx, removed.tag, false, nil) })
			for _, s := range n.others(leader) {
				eventually(t, "the removal in the table of "+s.tag, func() bool {
					return slices.ContainsFunc(s.node.Members(), func(m *raftlogv1.Member) bool { return m.GetTag() == removed.tag && m.GetRemoved() })
				})
			}
			_, err := removed.next(ctx, "users")
			wantOutcome(t, err, outcome.NotApplied, outcome.Stopping)
			leader.link.partition()
			if restarts {
				removed.stop(true)
				removed.open(func(c *cluster.Config) { c.PeerList = n.peers })
				removed.startDoomed()
			}
			stays.eventuallyNext("users")
			select {
			case <-removed.node.Done():
			case <-ctx.Done():
				t.Fatal("the removed node does not end")
			}
			if err := removed.node.Err(); !errors.Is(err, member.ErrRemoved) {
				t.Errorf("the removed node ended with %v", err)
			}
			tables[leader.tag].slow.Store(false)
			leader.link.heal()
			leader.eventuallyNext("users")
		})
	}
}
