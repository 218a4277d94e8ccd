package peers

import (
	"slices"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Configuration is Raft's newest configuration, by the table of members. It is known
// without asking Raft's main loop.
type Configuration struct {
	raft  *raft.Raft
	table *Table
}

// NewConfiguration returns the configuration of r, which runs.
func NewConfiguration(r *raft.Raft, table *Table) Configuration { return Configuration{r, table} }

// Servers returns its servers, which must not be changed.
func (c Configuration) Servers() []raft.Server {
	return c.raft.GetConfiguration().Configuration().Servers
}

// Has reports whether the member with this tag is in it.
func (c Configuration) Has(tag string) bool {
	m, ok := c.table.ByTag(tag)
	return ok && c.holds(m)
}

func (c Configuration) holds(m *raftlogv1.Member) bool {
	return slices.ContainsFunc(c.Servers(), func(s raft.Server) bool { return s.ID == member.ServerID(m.GetId()) })
}

// HasLeft reports whether a member was removed, and has left Raft's configuration permanently. The
// configuration follows the table of members. Until the configuration without the member is
// committed, the leader may be lost, and the others then need the member's vote.
func (c Configuration) HasLeft(m *raftlogv1.Member) bool {
	if _, left := c.table.left.Load(string(m.GetId())); left || !m.GetRemoved() {
		return m.GetRemoved()
	}
	if c.holds(m) || c.table.NewestConfiguration() > max(c.raft.CommitIndex(), c.raft.AppliedIndex()) {
		return false
	}
	c.table.left.Store(string(m.GetId()), nil)
	return true
}

// Voters returns the raw Raft ids of the voters.
func (c Configuration) Voters() []string {
	var ids []string
	for _, m := range c.VotingMembers() {
		ids = append(ids, string(m.GetId()))
	}
	return ids
}

// VotingMembers returns the voters as members.
func (c Configuration) VotingMembers() []*raftlogv1.Member {
	var members []*raftlogv1.Member
	for _, s := range c.Servers() {
		if m, ok := c.table.ByServerID(string(s.ID)); ok && s.Suffrage == raft.Voter {
			members = append(members, m)
		}
	}
	return members
}

// VoterNames returns the Raft names of the voters.
func (c Configuration) VoterNames() []raft.ServerID { return votersIn(c.Servers()) }

func votersIn(servers []raft.Server) []raft.ServerID {
	var names []raft.ServerID
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			names = append(names, s.ID)
		}
	}
	return names
}

// ServerOf returns a member as Raft's first configuration names it.
func ServerOf(m *raftlogv1.Member) raft.Server {
	id := member.ServerID(m.GetId())
	s := raft.Server{ID: id, Address: transport.Address(id), Suffrage: raft.Voter}
	if m.GetWatcher() {
		s.Suffrage = raft.Nonvoter
	}
	return s
}

// directory is the transport's view of the table of members.
type directory struct {
	table *Table
	hint  *Hint
	raft  func() *raft.Raft
}

// NewDirectory returns a directory. raft returns nil before Raft runs.
func NewDirectory(table *Table, hint *Hint, raft func() *raft.Raft) transport.Directory {
	return directory{table, hint, raft}
}

// Lookup implements transport.Directory. A removed member whose vote still counts is returned
// as present. Before Raft runs here, that is not known, and a removed member is unknown:
// returned as removed, its node would end.
func (d directory) Lookup(id string) (transport.Peer, bool) {
	m, ok := d.table.ByServerID(id)
	r := d.raft()
	if !ok || m.GetRemoved() && r == nil {
		return transport.Peer{}, false
	}
	address := m.GetRaftAddress()
	if !d.table.Moved(m.GetId()) { // Else this node has found it itself.
		address = d.hint.Locate(m).GetRaftAddress()
	}
	configuration := NewConfiguration(r, d.table)
	return transport.Peer{
		ID: id, Tag: m.GetTag(), Address: address, Removed: configuration.HasLeft(m),
		// The first members vote before the table marks them as voters.
		Voter: r == nil || m.GetVoter() || slices.Contains(configuration.VoterNames(), raft.ServerID(id)),
	}, true
}
