package cluster

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// roster is this node's view of the members: the replicated table, plus members from the
// node's record and from other members. After a restart the replicated table is as old as
// the newest snapshot until a leader sends a commit index; a leader that is not in it
// would be refused permanently. A copy is kept because every forwarded group and every
// call of a peer reads it.
//
// Invariant: a member that was seen once stays in it, and one that was seen as removed
// stays removed.
type roster struct {
	registry Registry
	record   *nodeRecord
	// reading lets one reader after another make the view: a slow one would put an older
	// table in the place of a newer one.
	reading sync.Mutex
	view    atomic.Pointer[rosterView]
	// moves, guarded by reading, are by raw Raft id.
	moves map[string]move
	// configured returns the index of Raft's newest configuration. It is set before Raft runs.
	configured func() uint64
	// left has the raw Raft ids of members that are out of Raft's configuration for good.
	left sync.Map
}

// move is where a member was found that does not answer where it is registered. Once the
// cluster has agreed on other addresses than those in from, it counts no more.
type move struct{ from, to Addresses }

// rosterView is one state of the table. It and its members are never changed.
type rosterView struct {
	// registered has the members' addresses as the cluster has agreed on them, members
	// those at which they are to be dialled.
	registered, members []*raftlogv1.Member
	byID                map[string]*raftlogv1.Member
	byTag               map[string]*raftlogv1.Member
}

func newRoster(registry Registry, record *nodeRecord) *roster {
	r := &roster{registry: registry, record: record, moves: map[string]move{}}
	r.refresh()
	return r
}

// refresh reads the table again and returns what it holds.
func (r *roster) refresh() *rosterView {
	r.reading.Lock()
	defer r.reading.Unlock()
	registered := combine(r.registry.Members(), r.record.get().Members)
	v := &rosterView{registered: registered, byID: map[string]*raftlogv1.Member{}, byTag: map[string]*raftlogv1.Member{}}
	for _, m := range registered {
		if to := r.addresses(m); to != addressesOf(m) {
			m = proto.CloneOf(m)
			m.GrpcAddress, m.RaftAddress = to.GRPC, to.Raft
		}
		v.members = append(v.members, m)
		v.byID[string(m.GetId())] = m
		v.byTag[m.GetTag()] = m
	}
	r.view.Store(v)
	return v
}

// addressesOf returns where a member is registered to be dialled.
func addressesOf(m *raftlogv1.Member) Addresses {
	return Addresses{GRPC: m.GetGrpcAddress(), Raft: m.GetRaftAddress()}
}

// addresses returns where a registered member is to be dialled. The caller holds reading.
func (r *roster) addresses(m *raftlogv1.Member) Addresses {
	at := addressesOf(m)
	if found, ok := r.moves[string(m.GetId())]; ok && found.from == at {
		return found.to
	}
	return at
}

// moved reports whether a member was found at other addresses than the registered ones.
func (r *roster) moved(id []byte) bool {
	v := r.view.Load()
	m, ok := v.byID[string(id)]
	return ok && !slices.Contains(v.registered, m) // It is a copy then.
}

// found records where a registered member answers, and reports whether that is news.
func (r *roster) found(m *raftlogv1.Member, at Addresses) bool {
	r.reading.Lock()
	news := r.addresses(m) != at
	r.moves[string(m.GetId())] = move{from: addressesOf(m), to: at}
	r.reading.Unlock()
	if news {
		r.refresh()
	}
	return news
}

// combine adds the other known members to the replicated ones, which it may change, and
// sorts by tag. Of a member in both, the replicated record counts, except for a removal,
// which is permanent. A tag that has an owner already gets no second one.
func combine(replicated, known []*raftlogv1.Member) []*raftlogv1.Member {
	byID, tags := map[string]*raftlogv1.Member{}, map[string]bool{}
	for _, m := range replicated {
		byID[string(m.GetId())], tags[m.GetTag()] = m, true
	}
	members := replicated
	for _, k := range known {
		m := byID[string(k.GetId())]
		switch {
		case m != nil && k.GetRemoved():
			m.Removed, m.Voter = true, false
		case m == nil && !tags[k.GetTag()]:
			byID[string(k.GetId())], tags[k.GetTag()] = k, true
			members = append(members, k)
		}
	}
	slices.SortFunc(members, func(a, b *raftlogv1.Member) int { return docid.CompareNodeTags(a.GetTag(), b.GetTag()) })
	return members
}

// learn adds members that another member knows and this node does not.
func (r *roster) learn(members []*raftlogv1.Member) error {
	known := r.refresh()
	var strangers []*raftlogv1.Member
	for _, m := range members {
		if known.byID[string(m.GetId())] == nil && known.byTag[m.GetTag()] == nil {
			strangers = append(strangers, m)
		}
	}
	err := r.record.update(func(record *member.Record) bool {
		record.Members = combine(record.Members, strangers)
		return len(strangers) > 0
	})
	r.refresh()
	return err
}

// byID returns the member with this raw Raft id. An unknown id may have just joined, so
// the table is read again before the answer is no.
func (r *roster) byID(id []byte) (*raftlogv1.Member, bool) {
	if m, ok := r.view.Load().byID[string(id)]; ok {
		return m, true
	}
	m, ok := r.refresh().byID[string(id)]
	return m, ok
}

// selfRemoved reports whether the table has this node as removed.
func (r *roster) selfRemoved() bool {
	m, ok := r.byID(r.record.id())
	return ok && m.GetRemoved()
}

// leaves records that a removed member is out of Raft's configuration for good.
func (r *roster) leaves(m *raftlogv1.Member) { r.left.Store(string(m.GetId()), nil) }

func (r *roster) hasLeft(m *raftlogv1.Member) bool {
	_, left := r.left.Load(string(m.GetId()))
	return left
}

// byServerID returns the member with this Raft name.
func (r *roster) byServerID(name string) (*raftlogv1.Member, bool) {
	id, err := nodeid.Parse(name)
	if err != nil {
		return nil, false
	}
	return r.byID(id[:])
}

// leader returns the member that leads by its Raft name, or NotApplied(NotLeader).
func (r *roster) leader(name string) (*raftlogv1.Member, error) {
	m, ok := r.byServerID(name)
	if !ok {
		return nil, outcome.NewNotApplied(outcome.NotLeader, fmt.Errorf("the leader %s is no member that this node knows", name))
	}
	return m, nil
}

// byTag returns the member with this tag.
func (r *roster) byTag(tag string) (*raftlogv1.Member, bool) {
	m, ok := r.refresh().byTag[tag]
	return m, ok
}
