package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Role is what a member does in Raft.
type Role uint8

// The roles. A node that is not in Raft's configuration yet, or any more, has
// RoleNone; a voter without a leader that asks for votes is a candidate.
const (
	RoleNone Role = iota
	RoleWatcher
	RoleNonvoter
	RoleFollower
	RoleCandidate
	RoleLeader
)

var roleNames = [...]string{"none", "watcher", "nonvoter", "follower", "candidate", "leader"}

// String returns the role in one word.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "unknown"
}

// MemberStatus is one member as this node sees it.
type MemberStatus struct {
	// Member is what the replicated table says.
	Member *raftlogv1.Member
	// Role is RoleLeader for the leader this node knows, and what Raft's
	// configuration says otherwise.
	Role Role
	// Self is set for the node asked.
	Self bool
	// Reachable reports whether the node's last ping was answered; true for Self.
	Reachable bool
	// SilentSince is since when it has not answered; zero if it answers, or was not
	// pinged.
	SilentSince time.Time
	// Applied is how far the member's state was at that ping.
	Applied uint64
	// StorageFull says that the free space of its disk was below the low-water mark.
	StorageFull bool
	// StorageSlow says that a write to its disk was slow, then or some seconds before.
	StorageSlow bool
	// LeaderPriority is its own; nil if unknown.
	LeaderPriority *uint32
	// Version is its program's; empty if unknown.
	Version string
	// CertificateEnds is the end of its certificate; zero without TLS, or if unknown.
	CertificateEnds time.Time
	// StateDiffers means that its state differed from this node's at the same log index.
	StateDiffers bool
	// Stats are those of its last seconds; nil if unknown.
	Stats *Stats
}

// Stats are what a node did in its last seconds, and the space left to it.
type Stats struct {
	// IdentitiesPerSecond are the identity values that it handed out, IDsPerSecond the
	// ids of all kinds; of HiLo, the numbers of its ranges.
	IdentitiesPerSecond, IDsPerSecond float64
	// CommitP99 is the 99th percentile of its groups' times, from their first sending to
	// their results, and WriteP99 that of its writes to the log, fsync included; 0
	// without samples.
	CommitP99, WriteP99 time.Duration
	// FreeBytes is the space left on its disk; 0 if it is not known.
	FreeBytes uint64
}

// Status is a node's view of its cluster. It may be stale: LastContact and the indexes
// show by how much.
type Status struct {
	// ClusterID is empty as long as the node belongs to no cluster.
	ClusterID []byte
	// ID is the node's raw Raft id, Tag its tag.
	ID  []byte
	Tag string
	// Role is what this node does.
	Role Role
	// LeaderID is the leader's raw Raft id, LeaderTag its tag; empty if unknown.
	LeaderID  []byte
	LeaderTag string
	// Term is Raft's.
	Term uint64
	// HasQuorum reports whether a quorum is in reach.
	HasQuorum bool
	// LastContact is when a follower last heard from the leader; now for a
	// leader; zero if never.
	LastContact time.Time
	// Applied is the newest entry the state has seen, Commit the newest that
	// this node knows to be committed.
	Applied, Commit uint64
	// Format is the log format that is written.
	Format uint32
	// StorageFull says that free space is below the low-water mark.
	StorageFull bool
	// StorageSlow says that a write to this node's disk is slow, or was some seconds ago.
	StorageSlow bool
	// Warnings are those of Node.Warnings.
	Warnings []string
	// Members are the members, removed ones too, sorted by tag. Their conditions are of
	// one moment, MembersAt.
	Members   []MemberStatus
	MembersAt time.Time
}

// Status returns this node's view of its cluster. It works from Open on.
func (n *Node) Status() Status {
	r := n.record.get()
	s := Status{
		ClusterID: r.ClusterID, ID: r.ID.Bytes(), Tag: n.record.tagIn(r),
		HasQuorum: n.HasQuorum(), Applied: n.cfg.StateMachine.AppliedIndex(),
		Format: n.cfg.Registry.Format(), StorageFull: n.StorageFull(), StorageSlow: n.StorageSlow(),
		Warnings: n.Warnings(),
	}
	e := n.up.Load()
	if e == nil {
		return s
	}
	if leader, ok := e.transfer.leader(); ok {
		s.LeaderID, s.LeaderTag = leader.GetId(), leader.GetTag()
	}
	s.Term, s.Commit = e.raft.CurrentTerm(), e.raft.CommitIndex()
	s.LastContact = e.raft.LastContact()
	if e.raft.State() == raft.Leader {
		s.LastContact = time.Now()
	}
	e.addMembers(&s)
	return s
}

// StorageFull says that free space is below the low-water mark, on this node or on a quorum.
func (n *Node) StorageFull() bool { return n.space.full() }

// StorageSlow says that a write to this node's disk is slow, or was some seconds ago.
func (n *Node) StorageSlow() bool { return n.disk.slow(time.Now()) }

// addMembers adds the members and their roles.
func (e *engine) addMembers(s *Status) {
	newest := e.pinger.shown()
	s.MembersAt = newest.at
	servers := map[raft.ServerID]raft.Server{}
	for _, server := range e.configuration.servers() {
		servers[server.ID] = server
	}
	for _, m := range e.node.roster.refresh().members {
		server, present := servers[member.ServerID(m.GetId())]
		status := MemberStatus{Member: m, Role: e.role(m, server, present, s.LeaderTag)}
		if e.node.record.isSelf(m) {
			status.Self, s.Role = true, status.Role
		}
		if status.Self || !m.GetRemoved() {
			e.addHeard(&status, newest)
		}
		s.Members = append(s.Members, status)
	}
}

// addHeard adds what a member said in a round.
func (e *engine) addHeard(status *MemberStatus, in *round) {
	reply, ok := in.replies[string(status.Member.GetId())]
	if !ok {
		status.SilentSince = e.pinger.silentSince(status.Member.GetId())
		return
	}
	status.Reachable, status.Applied = true, reply.GetAppliedIndex()
	status.StorageSlow, status.LeaderPriority = reply.GetStorageSlow(), new(reply.GetLeaderPriority())
	status.StorageFull, status.Version = reply.GetStorageFull(), reply.GetVersion()
	status.StateDiffers = in.differing[string(status.Member.GetId())]
	if ends := reply.GetCertificateEnds(); ends != 0 {
		status.CertificateEnds = time.Unix(ends, 0)
	}
	if f := reply.GetFigures(); f != nil {
		status.Stats = &Stats{
			IdentitiesPerSecond: f.GetIdentitiesPerSecond(), IDsPerSecond: f.GetIdsPerSecond(),
			CommitP99: micros(f.GetCommitP99Micros()), WriteP99: micros(f.GetWriteP99Micros()), FreeBytes: f.GetFreeBytes(),
		}
	}
}

func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }

// role returns what a member does, by Raft's configuration.
func (e *engine) role(m *raftlogv1.Member, server raft.Server, present bool, leader string) Role {
	switch {
	case !present || m.GetRemoved():
		return RoleNone
	case m.GetTag() == leader:
		return RoleLeader
	case m.GetWatcher():
		return RoleWatcher
	case server.Suffrage != raft.Voter:
		return RoleNonvoter
	case e.node.record.isSelf(m) && e.raft.State() == raft.Candidate:
		return RoleCandidate
	}
	return RoleFollower
}
