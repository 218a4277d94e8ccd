package leader

import (
	"sync"

	"github.com/hashicorp/raft"
)

// nearEnough is how many entries a server may be behind and still count as caught up: about
// what a busy cluster writes between two checks. A transfer target must catch up within an
// election timeout, which bounds a transfer.
const nearEnough = 512

type transferTarget struct {
	server raft.Server
	// applied is its applied index at its last answer, and behind by how much that was
	// behind this node's commit index when the answer came.
	applied, behind uint64
	// priority is its own; with 0 it leads only if no other voter can.
	priority uint32
	// full and slow are of its disk; lonely means that it is in touch with too few voters to lead.
	full, slow, lonely bool
	// attempted orders the newest transfer attempts to each voter; 0 is never.
	attempted uint64
}

// transferAttempts counts the transfer attempts, and remembers the newest to each server.
// It outlives a leadership: a server may gain leadership and transfer it back.
type transferAttempts struct {
	mu     sync.Mutex
	count  uint64
	newest map[raft.ServerID]uint64
}

func (o *transferAttempts) add(to raft.ServerID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.newest == nil {
		o.newest = map[raft.ServerID]uint64{}
	}
	o.count++
	o.newest[to] = o.count
}

func (o *transferAttempts) newestTo(id raft.ServerID) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest[id]
}

func (c transferTarget) fit() bool { return !c.full && !c.slow && !c.lonely && c.behind <= nearEnough }

// preferredTo orders transfer targets: a priority above 0, then the older attempt, then the
// greater priority, then the higher applied index. Without the rule about attempts, a voter
// that answers pings but not Raft would be chosen again and again while nothing is written.
func (c transferTarget) preferredTo(d transferTarget) bool {
	switch {
	case (c.priority == 0) != (d.priority == 0):
		return d.priority == 0
	case c.attempted != d.attempted:
		return c.attempted < d.attempted
	case c.priority != d.priority:
		return c.priority > d.priority
	}
	return c.applied > d.applied
}

// bestTarget returns the preferred fit target. differ means that the voters differ in disk, links or
// priority, of which Raft knows nothing, so that Raft must not choose.
func bestTarget(all []transferTarget) (best transferTarget, found, differ bool) {
	for _, c := range all {
		differ = differ || c.full || c.slow || c.lonely || c.priority != all[0].priority
		if c.fit() && (!found || c.preferredTo(best)) {
			best, found = c, true
		}
	}
	return best, found, differ
}
