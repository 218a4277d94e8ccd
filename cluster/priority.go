package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// priorityTick is how often a leader compares its priority with those of the others.
	priorityTick = 200 * time.Millisecond
	// minReturn is for how long a voter with a greater priority must have been fit to lead
	// before leadership goes to it. Each further offer within returnMemory doubles that, up
	// to maxReturn: a voter that cannot keep leadership, or does not take it, must not cost
	// the callers a change of leader every few seconds.
	minReturn = 5 * time.Second
	maxReturn = 5 * time.Minute
	// soonReturn is minReturn for a leader that shall not lead. Within it a voter that has
	// just stopped, as the leader before may have, has ended and does not answer any more.
	soonReturn   = 2 * memberPingEvery
	returnMemory = 10 * time.Minute
)

// returns decides when leadership goes to a voter because of its priority. It outlives a
// leadership.
type returns struct {
	// fit is since when each voter with a greater priority has been fit.
	fit map[raft.ServerID]time.Time
	// offered are the newest offers.
	offered map[raft.ServerID]offer
}

// offer is an offer of leadership because of a priority, and for how long the voter had to
// be fit before it.
type offer struct {
	at   time.Time
	wait time.Duration
}

// choose returns the voter that leadership goes to now, from a node with this priority: of
// those with the greatest priority, the one that is furthest. A node whose priority is 0
// waits only for soonReturn before its first offer.
func (r *returns) choose(now time.Time, own uint32, all []candidate) (best candidate, found bool) {
	fit := map[raft.ServerID]time.Time{}
	for _, c := range all {
		if !c.fit() || c.priority <= own {
			continue
		}
		since, before := r.fit[c.server.ID]
		if !before {
			since = now
		}
		fit[c.server.ID] = since
		if now.Sub(since) < r.wait(now, own, c.server.ID) || r.recent(now, own, c.server.ID) {
			continue
		}
		if !found || c.priority > best.priority || c.priority == best.priority && c.applied > best.applied {
			best, found = c, true
		}
	}
	r.fit = fit
	return best, found
}

// wait is for how long a voter must have been fit.
func (r *returns) wait(now time.Time, own uint32, id raft.ServerID) time.Duration {
	last, offered := r.offered[id]
	switch {
	case offered && now.Sub(last.at) < returnMemory:
		return min(max(2*last.wait, minReturn), maxReturn)
	case own == 0:
		return soonReturn
	}
	return minReturn
}

// recent reports whether a voter was offered leadership too short a time ago.
func (r *returns) recent(now time.Time, own uint32, id raft.ServerID) bool {
	last, offered := r.offered[id]
	return offered && now.Sub(last.at) < r.wait(now, own, id)
}

// made records an offer.
func (r *returns) made(now time.Time, own uint32, id raft.ServerID) {
	if r.offered == nil {
		r.offered = map[raft.ServerID]offer{}
	}
	r.offered[id] = offer{now, r.wait(now, own, id)}
}

// followPriority hands leadership to a voter with a greater priority, until ctx ends.
func (h *handover) followPriority(ctx context.Context) {
	// What was fit in an earlier leadership may have been away since.
	h.returns.fit = nil
	for ctx.Err() == nil {
		if best, found := h.returns.choose(time.Now(), h.priority, h.candidates()); found {
			h.returns.made(time.Now(), h.priority, best.server.ID)
			h.log.Info("leadership goes to a node with a greater priority", "to", best.server.ID, "priority", best.priority, "own", h.priority)
			if err := h.transfer(ctx, best.server); err != nil && ctx.Err() == nil {
				h.log.Warn("leadership was not handed over", "error", err)
			}
		}
		sleep(ctx, priorityTick)
	}
}
