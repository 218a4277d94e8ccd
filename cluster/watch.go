package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/quorum"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// membersTick is how often the table of members is compared with the copy in the record.
// A slightly old copy is harmless.
const membersTick = 250 * time.Millisecond

// watchQuorum keeps the route to the leader and the state of the quorum up to date, and
// ends the node when Raft has ended.
func (e *engine) watchQuorum(ctx context.Context) {
	news := make(chan raft.Observation, 16)
	observer := raft.NewObserver(news, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	})
	e.raft.RegisterObserver(observer)
	defer e.raft.DeregisterObserver(observer)
	tick := time.NewTicker(quorum.Tick)
	defer tick.Stop()
	leaders := succession{changed: e.node.cfg.Events.LeaderChanged}
	for {
		select {
		case <-news:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		_, leader := e.raft.LeaderWithID()
		leaders.saw(string(leader))
		e.gatherer.SetLeader(e.hint.choose(time.Now(), string(leader), e.name))
		e.lookForQuorum(ctx, leader != "" && string(leader) != e.name)
		e.checkRaft()
	}
}

// succession notices changes of the leader.
type succession struct {
	last string
	// changed may be nil.
	changed func()
}

// saw records the leader; none is no change.
func (s *succession) saw(leader string) {
	if leader == "" || leader == s.last {
		return
	}
	if s.last != "" && s.changed != nil {
		s.changed()
	}
	s.last = leader
}

// lookForQuorum passes on whether a quorum is in reach.
func (e *engine) lookForQuorum(ctx context.Context, follows bool) {
	self, voters := string(e.id()), e.voters()
	present, changed := e.quorum.Look(ctx, voters, follows)
	if present {
		e.node.standing.quorum(slices.ContainsFunc(voters, func(id string) bool { return id != self }))
	}
	e.gatherer.SetQuorum(present)
	if changed {
		e.node.log.Info("the reachability of a quorum has changed", "in_reach", present)
	}
}

// checkRaft ends the node when Raft has ended by itself, which it does when it
// was removed.
func (e *engine) checkRaft() {
	if e.raft.State() != raft.Shutdown {
		return
	}
	if m, ok := e.node.roster.byID(e.id()); ok && m.GetRemoved() {
		e.node.removed()
		return
	}
	e.node.lifecycle.fail(errors.New("cluster: raft has ended by itself"))
}

// watchMembers keeps a copy of the table of members in the record, and notices
// the removal of this node.
func (e *engine) watchMembers(ctx context.Context) {
	for ctx.Err() == nil {
		err := e.node.record.update(func(r *member.Record) bool {
			// Read in here, so that concurrent changes are not lost.
			members := e.node.roster.refresh().members
			e.disconnectMoved(r.Members, members)
			if member.SameMembers(r.Members, members) {
				return false
			}
			r.Members = members
			return true
		})
		if err != nil {
			e.node.lifecycle.fail(fmt.Errorf("cluster: %w", err))
			return
		}
		e.noticeRemoval()
		sleep(ctx, membersTick)
	}
}

// disconnectMoved closes the connections of members that were removed or have a new
// address: they have to greet again. A connection from the old address may be another
// process of the same id, which must not vote beside the one at the new address.
func (e *engine) disconnectMoved(before, now []*raftlogv1.Member) {
	known := map[string]*raftlogv1.Member{}
	for _, m := range before {
		known[string(m.GetId())] = m
	}
	for _, m := range now {
		old := known[string(m.GetId())]
		if old == nil || e.isSelf(m) || old.GetRaftAddress() == m.GetRaftAddress() && old.GetRemoved() == m.GetRemoved() {
			continue
		}
		e.transport.Disconnect(member.ServerID(m.GetId()))
		if m.GetRemoved() && e.node.cfg.OnRemoved != nil {
			e.node.cfg.OnRemoved(m)
		}
	}
}

// noticeRemoval ends the node when the table has it as removed. A leader hands over
// first; Raft ends it if that cannot be done.
func (e *engine) noticeRemoval() {
	if m, ok := e.node.roster.byID(e.id()); ok && m.GetRemoved() && e.raft.State() != raft.Leader {
		e.node.removed()
	}
}

// removed records that this node was removed, and ends it.
func (n *Node) removed() {
	err := n.record.update(func(r *member.Record) bool {
		changed := !r.Removed
		r.Removed = true
		return changed
	})
	n.lifecycle.fail(errors.Join(fmt.Errorf("cluster: %w (tag %s): empty the data directory to join as a new member, under a new tag",
		member.ErrRemoved, n.record.get().Tag), err))
}
