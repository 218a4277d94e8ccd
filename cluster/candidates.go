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
