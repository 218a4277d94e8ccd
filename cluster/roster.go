package cluster

import (
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// roster is this node's view of the table of members: the replicated one, or,
// before the node has applied its log, the copy in its record. A copy is kept
// because every group that is forwarded and every call of a peer looks there.
type roster struct {
	registry Registry
	identity *identity
	view     atomic.Pointer[rosterView]
}

// rosterView is one state of the table. Nobody changes it or its members.
type rosterView struct {
	members []*raftlogv1.Member
	byID    map[string]*raftlogv1.Member
	byTag   map[string]*raftlogv1.Member
}

func newRoster(registry Registry, identity *identity) *roster {
	r := &roster{registry: registry, identity: identity}
	r.refresh()
	return r
}

// refresh reads the table again and returns what it holds.
func (r *roster) refresh() *rosterView {
	members := r.registry.Members()
	if len(members) == 0 {
		members = r.identity.get().Members
	}
	v := &rosterView{members: members, byID: map[string]*raftlogv1.Member{}, byTag: map[string]*raftlogv1.Member{}}
	for _, m := range members {
		v.byID[string(m.GetId())] = m
		v.byTag[m.GetTag()] = m
	}
	r.view.Store(v)
	return v
}

// byID returns the member with this raw Raft id. A stranger may be somebody who
// has just joined, so the table is read again before the answer is no.
func (r *roster) byID(id []byte) (*raftlogv1.Member, bool) {
	if m, ok := r.view.Load().byID[string(id)]; ok {
		return m, true
	}
	m, ok := r.refresh().byID[string(id)]
	return m, ok
}

// byServerID returns the member with this Raft name.
func (r *roster) byServerID(name string) (*raftlogv1.Member, bool) {
	id, err := member.ParseID(name)
	if err != nil {
		return nil, false
	}
	return r.byID(id[:])
}

// byTag returns the member with this tag.
func (r *roster) byTag(tag string) (*raftlogv1.Member, bool) {
	m, ok := r.refresh().byTag[tag]
	return m, ok
}
