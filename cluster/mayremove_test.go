package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// failingLeader answers the question whether a member may be removed with an error.
type failingLeader struct {
	cluster.Peers
	answer func(ctx context.Context) error
}

func (p failingLeader) MayRemove(ctx context.Context, _ []byte, _ *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	return nil, p.answer(ctx)
}

// TestRemovalThatTheLeaderDoesNotAnswer: the question is put until the time is over, and
// the error then says what came of it before.
func TestRemovalThatTheLeaderDoesNotAnswer(t *testing.T) {
	t.Parallel()
	broken := errors.New("the leader is broken")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	answer := func(ctx context.Context) error {
		if asked++; asked < 3 {
			return broken
		}
		cancel() // The last try is cut short, which tells nothing new.
		<-ctx.Done()
		return ctx.Err()
	}
	n := startNetwork(t, 3, func(c *cluster.Config) {
		patient(c)
		c.Peers = failingLeader{c.Peers, answer}
	})
	leader := n.leader()
	follower := n.servers[0]
	if follower == leader {
		follower = n.servers[1]
	}
	_, err := follower.node.RemoveMember(ctx, leader.tag, false, nil)
	if outcome.Of(err) != outcome.NotApplied || outcome.ReasonOf(err) != outcome.Deadline || !errors.Is(err, broken) {
		t.Errorf("after %d questions: %v", asked, err)
	}
}
