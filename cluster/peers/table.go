package peers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Caller calls other nodes: see cluster.Peers.
type Caller interface {
	Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error)
	Ping(ctx context.Context, id []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error)
	Members(ctx context.Context, id []byte) ([]*raftlogv1.Member, error)
}

// Table is this node's view of the members: the replicated table, plus members from the
// node's record and from other members. After a restart the replicated table is as old as
// the newest snapshot until a leader sends a commit index; a leader that is not in it
// would be refused permanently. A copy is kept because every forwarded group and every
// call of a peer reads it.
//
// Invariant: a member that was seen once stays in it, and a member that was seen as removed
// stays removed.
type Table struct {
	replicated func() []*raftlogv1.Member
	record     *member.NodeRecord
	// reading serializes the readers that make the view: a slow reader would replace a newer
	// table by an older one.
	reading sync.Mutex
	view    atomic.Pointer[View]
	// moves, guarded by reading, are by raw Raft id.
	moves map[string]move
	// configured returns the index of Raft's newest configuration. It is set before Raft runs.
	configured func() uint64
	// left has the raw Raft ids of members that have left Raft's configuration permanently.
	left sync.Map
}

// move is where a member was found that does not answer where it is registered. It no
// longer counts once the cluster has agreed on other addresses than those in from.
type move struct{ from, to member.Addresses }

// View is one state of the table. It and its members are never changed.
type View struct {
	// Registered has the members' addresses as the cluster has agreed on them, Members
	// those at which they are to be dialled.
	Registered, Members []*raftlogv1.Member
	byID                map[string]*raftlogv1.Member
	byTag               map[string]*raftlogv1.Member
}

// NewTable returns the table as it is now. replicated returns copies of all members in the
// replicated state, removed ones too.
func NewTable(replicated func() []*raftlogv1.Member, record *member.NodeRecord) *Table {
	t := &Table{replicated: replicated, record: record, moves: map[string]move{}}
	t.Refresh()
	return t
}

// Refresh reads the table again and returns its new state.
func (t *Table) Refresh() *View {
	t.reading.Lock()
	defer t.reading.Unlock()
	registered := combine(t.replicated(), t.record.Get().Members)
	v := &View{Registered: registered, byID: map[string]*raftlogv1.Member{}, byTag: map[string]*raftlogv1.Member{}}
	for _, m := range registered {
		if to := t.addresses(m); to != addressesOf(m) {
			m = proto.CloneOf(m)
			m.GrpcAddress, m.RaftAddress = to.GRPC, to.Raft
		}
		v.Members = append(v.Members, m)
		v.byID[string(m.GetId())] = m
		v.byTag[m.GetTag()] = m
	}
	t.view.Store(v)
	return v
}

func addressesOf(m *raftlogv1.Member) member.Addresses {
	return member.Addresses{GRPC: m.GetGrpcAddress(), Raft: m.GetRaftAddress()}
}

// addresses returns where a registered member is to be dialled. The caller holds reading.
func (t *Table) addresses(m *raftlogv1.Member) member.Addresses {
	at := addressesOf(m)
	if found, ok := t.moves[string(m.GetId())]; ok && found.from == at {
		return found.to
	}
	return at
}

// Moved reports whether a member was found at other addresses than the registered ones.
func (t *Table) Moved(id []byte) bool {
	v := t.view.Load()
	m, ok := v.byID[string(id)]
	return ok && !slices.Contains(v.Registered, m) // It is a copy then.
}

// found records where a registered member answers, and reports whether that is news.
func (t *Table) found(m *raftlogv1.Member, at member.Addresses) bool {
	t.reading.Lock()
	news := t.addresses(m) != at
	t.moves[string(m.GetId())] = move{from: addressesOf(m), to: at}
	t.reading.Unlock()
	if news {
		t.Refresh()
	}
	return news
}

// combine adds the other known members to the replicated members, which it may change, and
// sorts by tag. For a member in both, the replicated record counts, except for a removal,
// which is permanent. A tag that has an owner gets no second one.
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

func (t *Table) learn(members []*raftlogv1.Member) error {
	known := t.Refresh()
	var strangers []*raftlogv1.Member
	for _, m := range members {
		if known.byID[string(m.GetId())] == nil && known.byTag[m.GetTag()] == nil {
			strangers = append(strangers, m)
		}
	}
	err := t.record.Update(func(record *member.Record) bool {
		record.Members = combine(record.Members, strangers)
		return len(strangers) > 0
	})
	t.Refresh()
	return err
}

// ByID returns the member with this raw Raft id. An unknown id may have just joined, so
// the table is read again before the answer is no.
func (t *Table) ByID(id []byte) (*raftlogv1.Member, bool) {
	if m, ok := t.view.Load().byID[string(id)]; ok {
		return m, true
	}
	m, ok := t.Refresh().byID[string(id)]
	return m, ok
}

// SelfRemoved reports whether the table has this node as removed.
func (t *Table) SelfRemoved() bool {
	m, ok := t.ByID(t.record.ID())
	return ok && m.GetRemoved()
}

// StartsRaft is called before Raft runs: configured returns the index of its newest
// configuration.
func (t *Table) StartsRaft(configured func() uint64) { t.configured = configured }

// NewestConfiguration returns that index, once Raft runs.
func (t *Table) NewestConfiguration() uint64 { return t.configured() }

func (t *Table) ByServerID(name string) (*raftlogv1.Member, bool) {
	id, err := nodeid.Parse(name)
	if err != nil {
		return nil, false
	}
	return t.ByID(id[:])
}

// Leader returns the member that leads by its Raft name, or NotApplied(NotLeader).
func (t *Table) Leader(name string) (*raftlogv1.Member, error) {
	m, ok := t.ByServerID(name)
	if !ok {
		return nil, outcome.NewNotApplied(outcome.NotLeader, fmt.Errorf("the leader %s is not in this node's table of members", name))
	}
	return m, nil
}

func (t *Table) ByTag(tag string) (*raftlogv1.Member, bool) {
	m, ok := t.Refresh().byTag[tag]
	return m, ok
}
