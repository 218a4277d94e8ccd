package fsm

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// ClusterID returns the id of the cluster, nil until it is formed.
func (s *State) ClusterID() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return bytes.Clone(s.contents.clusterID)
}

// Members returns copies of all members, removed ones included, by tag.
func (s *State) Members() []*raftlogv1.Member {
	members, _ := s.Membership()
	return members
}

// Membership returns copies of all members, removed ones included, by tag, and the log index of the
// last change of the members, their HTTP ports or their votes, which clients see. It is the same in
// all states with the same members.
func (s *State) Membership() (members []*raftlogv1.Member, index uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	members = s.contents.members.sorted()
	for i, m := range members {
		members[i] = proto.CloneOf(m)
	}
	return members, s.contents.members.index
}

// Etags returns the cluster's record of a node's etags, by its Raft id; nil if there is
// none. Its ceilings must not be changed.
func (s *State) Etags(nodeID []byte) *raftlogv1.EtagRecord {
	node, err := nodeid.FromBytes(nodeID)
	e := s.copyEtags(node)
	if err != nil || e == nil {
		return nil
	}
	return withCeilings(e.head, e.ceilings.Values())
}

// copyEtags takes the write lock: a copy changes the owner of the shared memory.
func (s *State) copyEtags(node nodeid.ID) *nodeEtags {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.contents.etags.byNode[node]; e != nil {
		return e.copy()
	}
	return nil
}
