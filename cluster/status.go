package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// MemberStatus is one member as this node sees it.
type MemberStatus struct {
	// Member is what the replicated table says.
	Member *raftlogv1.Member
	Votes  bool
	// Condition is its answer to the last ping; nil if it did not answer. The node asked
	// answers itself.
	Condition *peerv1.PingResponse
	// SilentSince is since when it has not answered; zero if it answers, or was not
	// pinged.
	SilentSince time.Time
	// Problem is where it does not answer, and why: see peers.Locator.Problem.
	Problem string
	// StateDiffers means that its state differed from this node's at the same log index.
	StateDiffers bool
}

// Status is a node's view of its cluster. It may be stale: LastContact and the indexes
// show by how much.
type Status struct {
	// ClusterID is empty as long as the node belongs to no cluster.
	ClusterID []byte
	// ID is the node's raw Raft id, Tag its tag.
	ID  []byte
	Tag string
	// LeaderTag is the leader's tag; empty if unknown.
	LeaderTag string
	Term      uint64
	HasQuorum bool
	// Unserved is LogServed's error while a quorum is in reach; nil if the log serves this node.
	Unserved error
	// LastContact is when a follower last heard from the leader; now for a
	// leader; zero if never.
	LastContact time.Time
	// Commit is the newest entry that this node knows to be committed.
	Commit uint64
	// StorageFull, StorageSlow and Warnings are the results of Node's methods of these names.
	StorageFull, StorageSlow bool
	Warnings                 []string
	// Members are the members, removed ones too, sorted by tag. Their conditions are of
	// one moment, MembersAt.
	Members   []MemberStatus
	MembersAt time.Time
}

// Status returns this node's view of its cluster. It works from Open on.
func (n *Node) Status() Status {
	r := n.record.Get()
	s := Status{
		ClusterID: r.ClusterID, ID: r.ID.Bytes(), Tag: n.record.TagIn(r),
		HasQuorum: n.HasQuorum(), StorageFull: n.StorageFull(), StorageSlow: n.StorageSlow(), Warnings: n.Warnings(),
	}
	e := n.up.Load()
	if e == nil {
		return s
	}
	if s.HasQuorum {
		s.Unserved = n.LogServed()
	}
	if leader, ok := e.leadership.Transfer.Leader(); ok {
		s.LeaderTag = leader.GetTag()
	}
	s.Term, s.Commit = e.raft.CurrentTerm(), e.raft.CommitIndex()
	s.LastContact = e.raft.LastContact()
	if e.raft.State() == raft.Leader {
		s.LastContact = time.Now()
	}
	e.addMembers(&s)
	return s
}

// Leader returns this node's term, and who leads in it; nil if this node knows nobody, or holds the
// leader for gone. It is called for each HTTP answer. The term is 0 before Raft runs.
func (n *Node) Leader() (term uint64, leader *raftlogv1.Member) {
	e := n.up.Load()
	if e == nil {
		return 0, nil
	}
	// Raft forgets the leader before it enters a new term: with equal terms around it, it is of this one.
	term = e.raft.CurrentTerm()
	_, name := e.raft.LeaderWithID()
	if name == "" || string(name) != e.gatherer.Leader() || e.raft.CurrentTerm() != term {
		return term, nil
	}
	leader, _ = e.node.table.ByServerID(string(name))
	return term, leader
}

// StorageFull says that free space is below the low-water mark, on this node or on a quorum.
func (n *Node) StorageFull() bool { return n.space.Full() }

// Room returns the room on the data directory's file system at the last look; zero if unknown.
func (n *Node) Room() disk.Room { return n.space.Room() }

// StorageSlow says that a write to this node's disk is slow, or was some seconds ago.
func (n *Node) StorageSlow() bool { return n.disk.Slow(time.Now()) }

func (e *engine) addMembers(s *Status) {
	newest := e.pinger.Newest()
	s.MembersAt = newest.At
	voters := e.configuration.VoterNames()
	for _, m := range e.node.table.Refresh().Members {
		status := MemberStatus{Member: m, Votes: !m.GetRemoved() && slices.Contains(voters, member.ServerID(m.GetId()))}
		if e.node.record.IsSelf(m) || !m.GetRemoved() {
			e.addHeard(&status, newest)
		}
		s.Members = append(s.Members, status)
	}
}

func (e *engine) addHeard(status *MemberStatus, in *peers.Round) {
	reply, ok := in.Replies[string(status.Member.GetId())]
	if !ok {
		status.SilentSince, status.Problem = e.pinger.Contact(status.Member.GetId()).SilentSince, e.locator.Problem(status.Member.GetId())
		return
	}
	status.Condition, status.StateDiffers = reply, in.Differing[string(status.Member.GetId())]
}

// Alive returns an error if Raft hangs. It asks no other node.
func (n *Node) Alive() error {
	if e := n.up.Load(); e != nil {
		return e.mainWatch.Err()
	}
	return nil
}

// ClusterCheck returns nil unless this node could be in the place of another cluster's node.
// Then it serves no callers: a listed node belongs to another cluster, and neither another
// listed node nor a quorum of its own cluster has confirmed it since the start.
func (n *Node) ClusterCheck() error { return n.clusterCheck.Err() }

// Warnings returns why the node does not get into touch with its cluster, one line each: why
// it finds no place in a cluster, that a listed node belongs to another cluster, or that no
// member reaches it. Which members it cannot reach is in the status. It works from Open on, and
// makes no calls.
func (n *Node) Warnings() []string {
	all := append(n.placeWarnings(), n.clusterCheck.Warnings()...)
	if e := n.up.Load(); e != nil {
		all = append(all, e.pinger.Unreached()...)
	}
	return all
}

// RaftStats are the Raft library's statistics.
type RaftStats struct {
	// State is follower, candidate, leader or shutdown.
	State string
	Term  uint64
	// LastIndex is the newest entry in this node's log, Commit the newest that it
	// knows to be committed, Applied the newest handed to the state machine.
	LastIndex, Commit, Applied uint64
	// SnapshotIndex is where the newest snapshot ends.
	SnapshotIndex uint64
	// Pending is how many entries wait for the state machine.
	Pending uint64
	// Voters and Nonvoters count the servers of the configuration.
	Voters, Nonvoters int
}

// RaftStats returns Raft's statistics; false before Raft runs.
func (n *Node) RaftStats() (RaftStats, bool) {
	e := n.up.Load()
	if e == nil {
		return RaftStats{}, false
	}
	stats := e.raft.Stats()
	f := RaftStats{
		State: strings.ToLower(e.raft.State().String()), Term: e.raft.CurrentTerm(), LastIndex: e.raft.LastIndex(),
		Commit: e.raft.CommitIndex(), Applied: e.raft.AppliedIndex(),
		SnapshotIndex: peers.StatOf(stats, "last_snapshot_index"), Pending: peers.StatOf(stats, "fsm_pending"),
	}
	for _, s := range e.configuration.Servers() {
		if s.Suffrage == raft.Voter {
			f.Voters++
		} else {
			f.Nonvoters++
		}
	}
	return f, true
}
