package cluster

import (
	"fmt"
	"time"
)

// unreachedAfter is after how many missed pings of all members a node counts as out of their
// reach.
const unreachedAfter = 10 * memberPingEvery

// wasPinged takes in that a member has pinged this node.
func (p *memberPinger) wasPinged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinged = time.Now()
}

// unreached warns of an address that is announced and wrong, or closed to the others: members
// that ping all others, as those that run Raft do, answer this node and do not ping it.
func (p *memberPinger) unreached() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.pinged) < unreachedAfter {
		return nil
	}
	for _, reply := range p.replies {
		if reply.GetProcess() != 0 {
			return []string{fmt.Sprintf("no member reaches this node at %s, the gRPC address that it announces, though members answer it: that address is another's, or closed to them",
				p.record.member().GetGrpcAddress())}
		}
	}
	return nil
}
