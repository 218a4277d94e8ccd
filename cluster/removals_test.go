package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"
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
