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
			n, leader, removed, table := removeOfFour(t)
			_, err := removed.next(t.Context(), "users")
			wantOutcome(t, err, outcome.NotApplied, outcome.Stopping)
			leader.link.partition()
			if restarts {
				removed.stop(true)
				removed.open(func(c *cluster.Config) { c.PeerList = n.peers })
				removed.startDoomed()
			}
			n.others(leader)[0].eventuallyNext("users")
			removed.endsRemoved()
			table.slow.Store(false)
			leader.link.heal()
			leader.eventuallyNext("users")
		})
	}
}

// TestARemovedVoterVotesUntilRaftsConfigurationIsCommitted: the leader appends the one without
// it, cannot commit that, and is lost. Nobody else has it, not even the removed one: its log
// would be longer than those of the others, which need its vote.
func TestARemovedVoterVotesUntilRaftsConfigurationIsCommitted(t *testing.T) {
	t.Parallel()
	n, leader, removed, table := removeOfFour(t)
	others := n.others(leader)[:2]
	for _, s := range others {
		s.link.partition()
	}
	table.slow.Store(false)
	eventually(t, "the end of a leadership without a quorum", func() bool { return !leads(leader) })
	conn, err := removed.node.DialMember(t.Context(), leader.node.ID().Bytes())
	if err != nil {
		t.Fatalf("the lost leader refuses the removed voter: %v", err)
	}
	_ = conn.Close()
	leader.link.partition()
	for _, s := range others {
		s.link.heal()
	}
	others[0].eventuallyNext("users")
	removed.endsRemoved()
	leader.link.heal()
	leader.eventuallyNext("users")
}

// removeOfFour starts four nodes and removes one of the voters that follow. The leader's table
// does not show the removal yet, those of all others do.
func removeOfFour(t *testing.T) (n *network, leader, removed *server, table *slowTable) {
	t.Helper()
	tables := map[string]*slowTable{}
	n = startNetwork(t, 4, func(c *cluster.Config) {
		tables[c.Tag] = &slowTable{Registry: c.Registry}
		c.Registry = tables[c.Tag]
	})
	n.servers[0].mustNext("users")
	leader = n.leader()
	table = tables[leader.tag]
	table.slow.Store(true)
	stays, removed := n.others(leader)[0], n.others(leader)[2]
	ctx, cancel := context.WithCancel(t.Context())
	var removal sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		removal.Wait()
	})
	removal.Go(func() { _, _ = stays.node.RemoveMember(ctx, removed.tag, false, nil) })
	for _, s := range n.others(leader) {
		eventually(t, "the removal in the table of "+s.tag, func() bool {
			return slices.ContainsFunc(s.node.Members(), func(m *raftlogv1.Member) bool { return m.GetTag() == removed.tag && m.GetRemoved() })
		})
	}
	return n, leader, removed, table
}

// endsRemoved waits until the node has ended because it was removed.
func (s *server) endsRemoved() {
	s.t.Helper()
	select {
	case <-s.node.Done():
	case <-time.After(20 * time.Second):
		s.t.Fatal("the removed node does not end")
	}
	if err := s.node.Err(); !errors.Is(err, member.ErrRemoved) {
		s.t.Errorf("the removed node ended with %v", err)
	}
}
