package cluster

import (
	"slices"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// configuration is Raft's newest configuration, by the table of members. It is known
// without asking Raft's main loop.
type configuration struct {
	raft   *raft.Raft
	roster *roster
}

func (c configuration) servers() []raft.Server {
	return c.raft.GetConfiguration().Configuration().Servers
}

// has reports whether the member with this tag is in it.
func (c configuration) has(tag string) bool {
	m, ok := c.roster.byTag(tag)
	return ok && c.holds(m)
}

func (c configuration) holds(m *raftlogv1.Member) bool {
	return slices.ContainsFunc(c.servers(), func(s raft.Server) bool { return s.ID == member.ServerID(m.GetId()) })
}

// left reports whether a member was removed, and has left Raft's configuration for good. The
// configuration follows the table of members. As long as the one without the member is not
// committed the leader may be lost, and the others need the member's vote.
func (c configuration) left(m *raftlogv1.Member) bool {
	if !m.GetRemoved() || c.roster.hasLeft(m) {
		return m.GetRemoved()
	}
	if c.holds(m) || c.roster.configured() > max(c.raft.CommitIndex(), c.raft.AppliedIndex()) {
		return false
	}
	c.roster.leaves(m)
	return true
}

// voters returns the raw Raft ids of the voters.
func (c configuration) voters() []string {
	var ids []string
	for _, m := range c.votingMembers() {
		ids = append(ids, string(m.GetId()))
	}
	return ids
}

// votingMembers returns the voters as members.
func (c configuration) votingMembers() []*raftlogv1.Member {
	var members []*raftlogv1.Member
	for _, s := range c.servers() {
		if m, ok := c.roster.byServerID(string(s.ID)); ok && s.Suffrage == raft.Voter {
			members = append(members, m)
		}
	}
	return members
}

// voterNames returns the Raft names of the voters.
func (c configuration) voterNames() []raft.ServerID { return votersIn(c.servers()) }

func votersIn(servers []raft.Server) []raft.ServerID {
	var names []raft.ServerID
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			names = append(names, s.ID)
		}
	}
	return names
}

// serverOf returns a member as Raft's first configuration names it.
func serverOf(m *raftlogv1.Member) raft.Server {
	id := member.ServerID(m.GetId())
	s := raft.Server{ID: id, Address: transport.Address(id), Suffrage: raft.Voter}
	if m.GetWatcher() {
		s.Suffrage = raft.Nonvoter
	}
	return s
}
