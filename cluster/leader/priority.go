package leader

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/peers"
)

const (
	priorityTick = 200 * time.Millisecond
	// minPriorityWait is how long a voter with a greater priority must have been fit before
	// leadership is transferred to it. Each further attempt within priorityWaitMemory
	// doubles that, up to maxPriorityWait: a voter that cannot keep leadership, or does not
	// take it, must not cost the callers a change of leader every few seconds.
	minPriorityWait = 5 * time.Second
	maxPriorityWait = 5 * time.Minute
	// zeroPriorityWait is minPriorityWait for a leader with priority 0. A voter that stopped
	// just before, as the last leader may have, no longer answers when it is over.
	zeroPriorityWait   = 2 * peers.PingEvery
	priorityWaitMemory = 10 * time.Minute
)

// priorityTransfers decides when leadership is transferred because of a priority. It
// outlives a leadership.
type priorityTransfers struct {
	// fit is since when each voter with a greater priority has been fit.
	fit map[raft.ServerID]time.Time
	// attempts are the newest to each voter.
	attempts map[raft.ServerID]priorityAttempt
}

// priorityAttempt is a transfer because of a priority, and how long its target had to be fit
// before it.
type priorityAttempt struct {
	at   time.Time
	wait time.Duration
}

// choose returns the target of a transfer now, from a leader with this priority: of the voters
// with the greatest priority, that with the highest applied index. A leader with priority 0
// waits only for zeroPriorityWait before its first attempt.
func (p *priorityTransfers) choose(now time.Time, own uint32, all []transferTarget) (best transferTarget, found bool) {
	fit := map[raft.ServerID]time.Time{}
	for _, c := range all {
		if !c.fit() || c.priority <= own {
			continue
		}
		since, before := p.fit[c.server.ID]
		if !before {
			since = now
		}
		fit[c.server.ID] = since
		if now.Sub(since) < p.wait(now, own, c.server.ID) || p.recent(now, own, c.server.ID) {
			continue
		}
		if !found || c.priority > best.priority || c.priority == best.priority && c.applied > best.applied {
			best, found = c, true
		}
	}
	p.fit = fit
	return best, found
}

func (p *priorityTransfers) wait(now time.Time, own uint32, id raft.ServerID) time.Duration {
	last, attempted := p.attempts[id]
	switch {
	case attempted && now.Sub(last.at) < priorityWaitMemory:
		return min(max(2*last.wait, minPriorityWait), maxPriorityWait)
	case own == 0:
		return zeroPriorityWait
	}
	return minPriorityWait
}

func (p *priorityTransfers) recent(now time.Time, own uint32, id raft.ServerID) bool {
	last, attempted := p.attempts[id]
	return attempted && now.Sub(last.at) < p.wait(now, own, id)
}

func (p *priorityTransfers) add(now time.Time, own uint32, id raft.ServerID) {
	if p.attempts == nil {
		p.attempts = map[raft.ServerID]priorityAttempt{}
	}
	p.attempts[id] = priorityAttempt{now, p.wait(now, own, id)}
}

func (t *Transfer) followPriority() duty.Duty {
	// What was fit in an earlier leadership may have been away since.
	t.priorityTransfers.fit = nil
	check := func(now time.Time) duty.Task {
		best, found := t.priorityTransfers.choose(now, t.cfg.Priority, t.targets())
		if !found {
			return nil
		}
		t.priorityTransfers.add(now, t.cfg.Priority, best.server.ID)
		return func(ctx context.Context) error {
			t.cfg.Log.Info("transferring leadership to a voter with a greater priority", "to", best.server.ID, "priority",
				best.priority, "own", t.cfg.Priority)
			return t.to(ctx, best.server)
		}
	}
	return transferDuty("priority", priorityTick, check)
}
