package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/quorum"
)

// quorumWatch tells who leads, and whether a quorum is in reach.
type quorumWatch struct {
	*engine
	monitor *quorum.Monitor
	leaders leaderChanges
	// disconnected gets a value when a member has closed its last connection to this node.
	disconnected chan struct{}
}

func (w *quorumWatch) run(ctx context.Context) {
	news := make(chan raft.Observation, 16)
	observer := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	})
	w.raft.RegisterObserver(observer)
	defer w.raft.DeregisterObserver(observer)
	next := time.NewTimer(quorum.Tick)
	defer next.Stop()
	for {
		select {
		case <-news:
		case <-w.disconnected:
		case <-next.C:
		case <-ctx.Done():
			return
		}
		next.Reset(time.Until(w.beats.Next(time.Now(), w.look(ctx))))
		w.memberWatch.CheckRaft()
	}
}

// memberDisconnected has the watch look at once: who leads may have changed.
func (w *quorumWatch) memberDisconnected() {
	select {
	case w.disconnected <- struct{}{}:
	default:
	}
}

// look returns when to look again.
func (w *quorumWatch) look(ctx context.Context) time.Duration {
	_, id := w.raft.LeaderWithID()
	if newest := w.transport.Contact(); newest.Term > w.raft.CurrentTerm() {
		id = newest.Leader // Raft's main goroutine waits for its disk, and has not read the request yet.
	}
	leader, name := string(id), w.node.record.Name()
	w.leaders.observe(leader)
	chosen, now := w.hint.Choose(time.Now(), leader, name), time.Now()
	w.gatherer.SetLeader(chosen)
	w.path.look(now, chosen)
	self, voters := string(w.node.record.ID()), w.configuration.Voters()
	present, changed, again := w.monitor.Look(ctx, voters, leader != "" && leader != name)
	if present {
		w.node.clusterCheck.Quorum(slices.ContainsFunc(voters, func(id string) bool { return id != self }))
	}
	w.gatherer.SetQuorum(present)
	if changed {
		w.node.log.Info("the reachability of a quorum has changed", "in_reach", present)
	}
	return again
}

type leaderChanges struct {
	last    string
	changed func()
}

// observe records the leader; none is no change.
func (s *leaderChanges) observe(leader string) {
	if leader == "" || leader == s.last {
		return
	}
	if s.last != "" {
		s.changed()
	}
	s.last = leader
}
