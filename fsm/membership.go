package fsm

import raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"

// publicMember is the part of a member that clients see; empty for a removed or unknown member.
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

// settle ends an entry that may have changed the membership.
//
// Invariant: it rises with each change, so that of two topologies, from any nodes, the
// one with the higher index is newer.
func (s *memberStore) settle(index uint64) {
	if s.moved {
		s.index = max(index, s.index+1)
	}
	s.moved = false
}

// restoreIndex restores the index of the newest change, which a snapshot has at most
// once.
func (s *memberStore) restoreIndex(index uint64) error {
	if index == 0 || s.index != 0 {
		return corrupt("a change of the membership at %d after one at %d", index, s.index)
	}
	s.index = index
	return nil
}
