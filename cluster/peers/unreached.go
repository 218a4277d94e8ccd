package peers

import (
	"fmt"
	"time"
)

// unreachedAfter is for how long no member must have pinged a node that is out of their reach.
const unreachedAfter = 10 * PingEvery

// WasPinged records that a member has pinged this node.
func (p *Pinger) WasPinged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinged = time.Now()
}

// Unreached warns of an address that is announced and wrong, or closed to the others: members
// that ping all others, as those that run Raft do, answer this node and do not ping it.
func (p *Pinger) Unreached() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.pinged) < unreachedAfter {
		return nil
	}
	for _, reply := range p.replies {
		if reply.GetProcess() != 0 {
			return []string{fmt.Sprintf("no member reaches this node at %s, the gRPC address that it announces, though members answer it: that "+
				"address is another's, or closed to them",
				p.cfg.Record.Member().GetGrpcAddress())}
		}
	}
	return nil
}
