package raftguard

import (
	"math"
	"sync"

	"github.com/hashicorp/raft"
)

// CatchUps are the followers that get a snapshot, or got one and lack entries after it, each
// with the first entry that this leader's log must keep for it. The library (v1.7.3) deletes
// all but the trailing entries with each snapshot that it takes: a follower whose snapshot took
// as long as writing these entries needed the next snapshot at once, and so on. etcd's server
// does not compact either while it sends a snapshot.
type CatchUps struct {
	mu    sync.Mutex
	needs map[raft.ServerID]uint64
}

// NewCatchUps returns CatchUps without a follower.
func NewCatchUps() *CatchUps { return &CatchUps{needs: map[raft.ServerID]uint64{}} }

// Begun records that a follower gets a snapshot that ends with an entry. The library compares
// that entry with the follower's before it sends the next.
func (c *CatchUps) Begun(id raft.ServerID, last uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needs[id] = last
}

// Matched records that a follower has the log up to an entry, and what is committed.
func (c *CatchUps) Matched(id raft.ServerID, index, committed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.needs[id]; is && index < committed {
		c.needs[id] = index
	} else {
		delete(c.needs, id)
	}
}

// Ended records that a follower does not catch up any more.
func (c *CatchUps) Ended(id raft.ServerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.needs, id)
}

// Clear records that this node does not lead any more.
func (c *CatchUps) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.needs)
}

// Needed returns the index of the first entry needed by a follower that catches up after a
// snapshot of this leader; the greatest number if no follower does.
func (c *CatchUps) Needed() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := uint64(math.MaxUint64)
	for _, index := range c.needs {
		first = min(first, index)
	}
	return first
}
