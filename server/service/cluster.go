package service

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Role is what a member does in the cluster.
type Role uint8

const (
	// RoleUnknown is not known to the node asked.
	RoleUnknown Role = iota
	// RoleLeader votes, and leads at the moment.
	RoleLeader
	// RoleFollower votes.
	RoleFollower
	// RoleJoining will vote once it has caught up.
	RoleJoining
	// RoleWatcher never votes.
	RoleWatcher
	// RoleRemoved was removed; its tag stays taken.
	RoleRemoved
)

// Member is a node of the cluster, now or formerly.
type Member struct {
	Tag string
	// ID is the node's Raft id, 32 hexadecimal digits.
	ID                                    string
	GRPCAddress, RaftAddress, HTTPAddress string
	Role                                  Role
	// Votes is what the replicated record says, the same on all nodes; Role is what
	// the node asked knows of the moment.
	Votes bool
	// LogFormat is the newest log format the member can read.
	LogFormat uint32
	Condition
	// Behind is by how many log entries its state is behind the furthest one.
	Behind uint64
}

// Condition is how a member is, as the node asked heard it last.
type Condition struct {
	// Reachable says that the member answered the last ping; true for the node asked
	// itself. What follows is unset if it did not.
	Reachable bool
	// SilentFor is for how long it has not answered; 0 if it does.
	SilentFor time.Duration
	// AppliedIndex is how far its state was.
	AppliedIndex uint64
	// StorageFull says that the free space of its disk was below the low-water mark.
	StorageFull bool
	// StorageSlow says that a write to its disk was slow, then or some seconds before.
	StorageSlow bool
	// LeaderPriority is its own; nil if it does not say.
	LeaderPriority *uint32
	// Version is that of its program; empty if it does not say.
	Version string
	// CertificateEnds is when its certificate does; zero without TLS, or if it does
	// not say.
	CertificateEnds time.Time
	// StateDiffers says that it had another state than the node asked, at the same log
	// index.
	StateDiffers bool
	// Stats are those of its last seconds; nil if it does not say.
	Stats *Stats
}

// Stats are what a node did in its last seconds, and the space left to it.
type Stats struct {
	// IdentitiesPerSecond are the identity values that it handed out, IDsPerSecond the
	// ids of all kinds; of HiLo, the numbers of its ranges.
	IdentitiesPerSecond, IDsPerSecond float64
	// CommitP99 is what 99 of 100 of its groups of operations took at most until their
	// results were there, and WriteP99 its writes to the log; 0 if there was none.
	CommitP99, WriteP99 time.Duration
	// FreeBytes is the space left on its disk; 0 if it is not known.
	FreeBytes uint64
}

// ClusterStatus is what a node's Raft part knows of the cluster by itself.
type ClusterStatus struct {
	// ClusterID is 32 hexadecimal digits; empty before the cluster was formed.
	ClusterID string
	// SelfID is this node's Raft id, 32 hexadecimal digits.
	SelfID string
	// SelfTag is this node's tag, or the one it wishes for.
	SelfTag   string
	LeaderTag string
	Term      uint64
	HasQuorum bool
	// LastContact is how long since the node heard from the leader; 0 on the
	// leader.
	LastContact time.Duration
	CommitIndex uint64
	// VoterTags are the members that vote, as Raft's configuration has it; nil
	// leaves it to the members' own records.
	VoterTags []string
	// Known are the members as the node knew them last, removed ones too: from its start
	// on, long before its state is restored.
	Known []*raftlogv1.Member
	// QuorumMissing is for how long no quorum has been in reach; 0 if one is.
	QuorumMissing time.Duration
	// StorageFull says that free space is below the low-water mark on this node or on a
	// quorum, so that nothing is proposed.
	StorageFull bool
	// Warnings say what is wrong with how the node was started.
	Warnings []string
	// Conditions are those of the members, by tag, this node among them, as they were
	// at one moment, ConditionsAt.
	Conditions   map[string]Condition
	ConditionsAt time.Time
}

// Furthest is the newest log entry that the state of any member in reach has. The
// commit index is often some entries above it: Raft's own, which are no state's.
func (c ClusterStatus) Furthest() uint64 {
	var furthest uint64
	for _, m := range c.Conditions {
		furthest = max(furthest, m.AppliedIndex)
	}
	return furthest
}

// Cluster shows and changes the cluster itself. Errors of the changes are
// *outcome.Error, or carry the state's refusal in a method Refused.
type Cluster interface {
	Status() ClusterStatus
	// RemoveMember removes a member, in the name of principal unless that is nil, and
	// returns the index of the log entry. Without force it is refused if too few
	// voters would answer afterwards.
	RemoveMember(ctx context.Context, tag string, force bool, principal *string) (logIndex uint64, err error)
	// Transfer transfers leadership to a voter, or to any if tag is empty, and
	// returns the new leader's tag.
	Transfer(ctx context.Context, tag string) (leader string, err error)
}

// Status is one node's view of the cluster.
type Status struct {
	ClusterStatus
	Self Member
	// StateIndex and StateHash belong together: states of two nodes with equal
	// indexes have equal hashes.
	StateIndex, StateHash uint64
	LogFormat             uint32
	Counts                fsm.Counts
	Version               string
	// Members are those present, sorted by tag as the state sorts them.
	Members []Member
	// Reserve is what the node has in reserve; nil for one that keeps none.
	Reserve *ReserveTotal
	// MembershipIndex is the log index of the last change of the members that their
	// clients see; 0 if there was none since there are such indexes. Statuses with
	// equal ones have the same members, addresses and votes, on all nodes.
	MembershipIndex uint64
}

// members are the use cases of the cluster and its members.
type members struct {
	*calls
	*proposer
	*reader
	cluster Cluster
	version string
	// hosts is Config.Hosts.
	hosts []string
	// reserve is Config.ReserveTotal.
	reserve func() *ReserveTotal
	// refusals bounds the lines about nodes that are not let in: whoever has a node's
	// certificate can ask without end.
	refusals rate.Sometimes
}

// GetStatus shows the cluster as this node sees it. It needs no quorum, takes no
// part in the limit on calls in flight, and never fails: it is what an operator
// asks when all else does.
func (m *members) GetStatus() Status {
	status := Status{ClusterStatus: m.cluster.Status(), Version: m.version}
	status.StateIndex, status.StateHash = m.state.Hash()
	status.LogFormat = m.state.Format()
	status.Counts = m.state.Counts()
	if m.reserve != nil {
		status.Reserve = m.reserve()
	}
	status.Self = Member{Tag: status.SelfTag, ID: status.SelfID}
	known, index := m.state.Membership()
	status.MembershipIndex = index
	if len(known) == 0 {
		known = status.Known
	}
	for _, k := range known {
		member := memberOf(k, status.ClusterStatus)
		if member.ID == status.SelfID {
			status.Self = member
		}
		if !k.GetRemoved() {
			status.Members = append(status.Members, member)
		}
	}
	return status
}

func memberOf(m *raftlogv1.Member, status ClusterStatus) Member {
	condition := status.Conditions[m.GetTag()]
	member := Member{
		Tag: m.GetTag(), ID: hex.EncodeToString(m.GetId()),
		GRPCAddress: m.GetGrpcAddress(), RaftAddress: m.GetRaftAddress(), HTTPAddress: m.GetHttpAddress(),
		Role: roleOf(m, status), Votes: m.GetVoter(), LogFormat: m.GetLogFormat(),
		Condition: condition,
	}
	if condition.Reachable {
		member.Behind = status.Furthest() - condition.AppliedIndex
	}
	return member
}

func roleOf(m *raftlogv1.Member, status ClusterStatus) Role {
	votes := m.GetVoter()
	if status.VoterTags != nil {
		votes = slices.Contains(status.VoterTags, m.GetTag())
	}
	switch {
	case m.GetRemoved():
		return RoleRemoved
	case m.GetTag() == status.LeaderTag:
		return RoleLeader
	case m.GetWatcher():
		return RoleWatcher
	case votes:
		return RoleFollower
	default:
		return RoleJoining
	}
}

// ListMembersRequest asks for one page of members.
type ListMembersRequest struct {
	// IncludeRemoved also lists former members.
	IncludeRemoved bool
	// PageSize is 1 to 1,000; 0 means 100.
	PageSize    int
	PageToken   string
	Consistency Consistency
}

// ListMembers lists the members.
func (m *members) ListMembers(ctx context.Context, req ListMembersRequest) (Page[Member], error) {
	return call(ctx, m.calls, "ListMembers", req, m.listMembers)
}

func (m *members) listMembers(ctx context.Context, req ListMembersRequest) (Page[Member], error) {
	c := cursor{scope: listMembers, prefix: ""}
	if req.IncludeRemoved {
		// Another list, so the tokens of one are refused by the other.
		c.database = "removed"
	}
	c, err := c.at(req.PageSize, req.PageToken)
	if err != nil {
		return Page[Member]{}, err
	}
	index, err := m.settle(ctx, req.Consistency)
	if err != nil {
		return Page[Member]{}, err
	}
	status, known := m.cluster.Status(), m.state.Members()
	if len(known) == 0 {
		known = slices.Clone(status.Known)
	}
	found := slices.DeleteFunc(known, func(k *raftlogv1.Member) bool {
		return docid.CompareNodeTags(k.GetTag(), c.after) <= 0 || k.GetRemoved() && !req.IncludeRemoved
	})
	slices.SortFunc(found, func(a, b *raftlogv1.Member) int { return docid.CompareNodeTags(a.GetTag(), b.GetTag()) })
	return cut(c, found, index, func(k *raftlogv1.Member) (string, Member) { return k.GetTag(), memberOf(k, status) }), nil
}

// RemoveMember removes a member for good and returns the index of the log entry. Without
// force it is refused if too few voters would answer afterwards.
func (m *members) RemoveMember(ctx context.Context, tag string, force bool) (uint64, error) {
	ctx, cancel := m.boundedChange(ctx)
	defer cancel()
	index, err := m.remove(ctx, tag, force)
	return index, m.finish(ctx, "RemoveMember", err)
}

func (m *members) remove(ctx context.Context, tag string, force bool) (uint64, error) {
	if err := checkNodeTag(tag); err != nil {
		return 0, err
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return 0, err
	}
	var index uint64
	err := m.audited(ctx, audit.Record{Event: audit.EventRemoveMember, Name: tag, Force: force}, func() (done change, err error) {
		done.before = m.memberByTag(tag)
		index, err = m.proposeRemoval(ctx, tag, force)
		done.index = index
		return done, err
	})
	return index, err
}

// proposeRemoval does for a removal what propose does for other operations: the
// state judges the caller.
func (m *members) proposeRemoval(ctx context.Context, tag string, force bool) (index uint64, err error) {
	err = m.named(ctx, false, false, func(principal *string) (err error) {
		index, err = m.cluster.RemoveMember(ctx, tag, force, principal)
		return err
	})
	return index, err
}

// memberByTag returns the present member with a tag as this node knows it, or nil.
func (m *members) memberByTag(tag string) any {
	for _, known := range m.state.Members() {
		if known.GetTag() == tag && !known.GetRemoved() {
			return memberOf(known, m.cluster.Status())
		}
	}
	return nil
}

// Transfer transfers leadership to the voter with this tag, or to any if it is
// empty, and returns the new leader's tag.
func (m *members) Transfer(ctx context.Context, tag string) (string, error) {
	ctx, cancel := m.boundedChange(ctx)
	defer cancel()
	leader, err := m.transfer(ctx, tag)
	return leader, m.finish(ctx, "Transfer", err)
}

func (m *members) transfer(ctx context.Context, tag string) (string, error) {
	if tag != "" {
		if err := checkNodeTag(tag); err != nil {
			return "", err
		}
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return "", err
	}
	leader, err := m.cluster.Transfer(ctx, tag)
	if err != nil {
		return "", proposalError(err, false)
	}
	return leader, nil
}

// changeTimeout bounds a removal and a transfer: a leader that is removed transfers
// leadership first.
const changeTimeout = 20 * time.Second

func (m *members) boundedChange(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(m.timeout, changeTimeout))
}

func checkNodeTag(tag string) error {
	if err := docid.ValidateNodeTag(tag); err != nil {
		return badForm(err, "tag")
	}
	return nil
}
