package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// sender sends groups to a leader: to this node's own Batcher, or to a peer.
type sender struct {
	*engine
	// name is this node's Raft name.
	name string
}

// Send implements commit.Sender. One hop: a peer that does not lead refuses.
func (s *sender) Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error) {
	if leader == s.name {
		return s.submit(ctx, group)
	}
	m, err := s.node.table.Leader(leader)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	s.node.cfg.Events.Forwarded()
	s.path.groups.begin(time.Now(), leader)
	result, err := s.node.cfg.Peers.Forward(ctx, m.GetId(), group)
	s.path.groups.end(time.Now(), err)
	return result, err
}

// submit hands a group to this node's own Batcher, unless the disk is nearly full: then
// it refuses before anything is written.
func (s *sender) submit(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	if s.node.space.Full() {
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.StorageFull, nil)
	}
	return s.batcher.Submit(ctx, group)
}

// attemptGap is the longest pause between two attempts that count as one outage.
const attemptGap = time.Second

// groups is what became of the groups that were sent to a leader, one after another.
type groups struct {
	mu     sync.Mutex
	leader string
	// since is when the first of the unanswered was sent; zero if the newest was answered.
	since    time.Time
	inFlight bool
	// failed and answered are when the newest failed, and when one was answered.
	failed, answered time.Time
}

func (g *groups) begin(now time.Time, leader string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader != leader {
		g.leader, g.since, g.answered = leader, time.Time{}, time.Time{}
	}
	if g.since.IsZero() || now.Sub(g.failed) > attemptGap {
		g.since = now
	}
	g.inFlight = true
}

// end takes a group's result. A refusal for the leader's own state is an answer.
func (g *groups) end(now time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight = false
	switch outcome.ReasonOf(err) {
	case outcome.StorageFull, outcome.Overloaded, outcome.TooLarge, outcome.SessionLost, outcome.Invalid:
		err = nil
	}
	if err != nil {
		g.failed = now
		return
	}
	g.since, g.answered = time.Time{}, now
}

// unanswered returns for how long this leader has answered no group, as of the newest attempt.
func (g *groups) unanswered(now time.Time, leader string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.since.IsZero() || g.leader != leader:
		return 0
	case g.inFlight:
		return now.Sub(g.since)
	}
	return g.failed.Sub(g.since)
}

// sinceAnswer returns how long ago a group was answered.
func (g *groups) sinceAnswer(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Sub(g.answered)
}
