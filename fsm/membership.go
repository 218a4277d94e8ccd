package fsm

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// publicMember is what clients see of a member: nothing of one that is not, or is
// no longer.
type publicMember struct {
	tag, address   string
	watcher, voter bool
}

func publicOf(m *raftlogv1.Member) publicMember {
	if m == nil || m.GetRemoved() {
		return publicMember{}
	}
	return publicMember{tag: m.GetTag(), address: m.GetHttpAddress(), watcher: m.GetWatcher(), voter: m.GetVoter()}
}

// settleMembership ends an entry that may have changed the membership. Below
// StrictFormat there is no index of it.
//
// Invariant: it rises with each change, so that of two topologies, from any nodes, the
// one with the higher index is newer.
func (c *contents) settleMembership(index uint64) {
	if c.membershipMoved && c.strict() {
		c.membership = max(index, c.membership+1)
	}
	c.membershipMoved = false
}

// restoreMembership restores the index of the newest change, which a snapshot has at most
// once.
func (c *contents) restoreMembership(index uint64) error {
	if !c.strict() || index == 0 || c.membership != 0 {
		return corrupt("a change of the membership at %d after one at %d in log format %d", index, c.membership, c.format)
	}
	c.membership = index
	return nil
}
