package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// nearEnough is how many entries a voter may be behind to get leadership: it must catch up
// within an election timeout, which bounds a transfer.
const nearEnough = 512

// candidate is a voter that leadership may be handed to.
type candidate struct {
	server raft.Server
	// applied is its applied index at its last answer, and behind by how much that was
	// behind this node's commit index when the answer came.
	applied, behind uint64
	// priority is its own; with 0 it shall lead only if no other voter can.
	priority uint32
	// full and slow are of its disk.
	full, slow bool
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

// fit reports whether leadership may be handed to c.
func (c candidate) fit() bool { return !c.full && !c.slow && c.behind <= nearEnough }

// before reports whether c is preferred to d: one that shall lead at all, then the one with
// the older offer, then the one with the greater priority, then the one that is further.
// Without the rule about offers, a voter that answers pings but not Raft would be chosen
// again and again while nothing is written.
func (c candidate) before(d candidate) bool {
	switch {
	case (c.priority == 0) != (d.priority == 0):
		return d.priority == 0
	case c.offered != d.offered:
		return c.offered < d.offered
	case c.priority != d.priority:
		return c.priority > d.priority
	}
	return c.applied > d.applied
}

// fittest returns the first of the voters that have room on disks that are not slow, and
// have nearly caught up. Where any is not like the others, by its disk or its priority,
// the choice must not be left to Raft.
func fittest(all []candidate) (best candidate, found, differ bool) {
	for _, c := range all {
		differ = differ || c.full || c.slow || c.priority != all[0].priority
		if c.fit() && (!found || c.before(best)) {
			best, found = c, true
		}
	}
	return best, found, differ
}
