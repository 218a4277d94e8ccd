package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// roomTick is how often a leader compares its disk with those of the others. It costs
	// no message: the member pinger has the answers.
	roomTick = 100 * time.Millisecond
	// nearEnough is how many entries a voter may be behind to get leadership: it must
	// catch up within an election timeout, which bounds a transfer.
	nearEnough = 512
)

// candidate is a voter that leadership may be handed to.
type candidate struct {
	server raft.Server
	// applied is its applied index at its last answer.
	applied uint64
	full    bool
	// offered orders the last offers of leadership to it; 0 is never.
	offered uint64
}

// offers counts the offers of leadership, and remembers the newest to each server. It
// outlives a leadership: a server may gain leadership and give it back.
type offers struct {
	mu     sync.Mutex
	count  uint64
	newest map[raft.ServerID]uint64
}

// made records an offer.
func (o *offers) made(to raft.ServerID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.newest == nil {
		o.newest = map[raft.ServerID]uint64{}
	}
	o.count++
	o.newest[to] = o.count
}

func (o *offers) newestTo(id raft.ServerID) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest[id]
}

// candidates returns the other voters that answered the last ping.
func (e *engine) candidates() []candidate {
	var all []candidate
	for _, s := range e.servers() {
		m, known := e.node.roster.byServerID(string(s.ID))
		if !known || s.Suffrage != raft.Voter || e.isSelf(m) {
			continue
		}
		if reply, ok := e.pinger.reply(m.GetId()); ok {
			all = append(all, candidate{s, reply.GetAppliedIndex(), reply.GetStorageFull(), e.offers.newestTo(s.ID)})
		}
	}
	return all
}

// before reports whether c is preferred to d: the one with the older offer, then the one
// that is further. Without the first rule, a voter that answers pings but not Raft would
// be chosen again and again while nothing is written.
func (c candidate) before(d candidate) bool {
	if c.offered != d.offered {
		return c.offered < d.offered
	}
	return c.applied > d.applied
}

// roomiest returns the first of the voters with room on their disks that have nearly
// caught up with commit; and whether any disk is full.
func roomiest(all []candidate, commit uint64) (best candidate, found, anyFull bool) {
	for _, c := range all {
		switch {
		case c.full:
			anyFull = true
		case c.applied+nearEnough >= commit && (!found || c.before(best)):
			best, found = c, true
		}
	}
	return best, found, anyFull
}

// heir returns the server to hand over to: an empty one, which leaves the choice to
// Raft, unless that could be one whose disk is nearly full.
func (e *engine) heir() raft.Server {
	best, found, anyFull := roomiest(e.candidates(), e.raft.CommitIndex())
	if !anyFull {
		return raft.Server{}
	}
	if found {
		e.offers.made(best.server.ID)
	}
	return best.server
}

// leaveToRoom hands leadership over while this node's disk is nearly full and another
// voter's is not: a leader without space refuses all calls.
func (e *engine) leaveToRoom(ctx context.Context) {
	for ctx.Err() == nil {
		if e.node.space.below.Load() {
			e.handToRoom(ctx)
		}
		sleep(ctx, roomTick)
	}
}

func (e *engine) handToRoom(ctx context.Context) {
	best, found, _ := roomiest(e.candidates(), e.raft.CommitIndex())
	if !found {
		return
	}
	e.offers.made(best.server.ID)
	e.node.log.Warn("this leader's disk is nearly full: leadership goes to a node with space", "to", best.server.ID)
	if err := e.transfer(ctx, best.server); err != nil {
		e.node.log.Warn("leadership was not handed over", "error", err)
		sleep(ctx, memberPingEvery)
	}
}
