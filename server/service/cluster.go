package service

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"time"

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
	// StorageFull says that the free space of its disk was below the mark.
	StorageFull bool
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
	// Addresses are those that members announce for their callers, as the node knew them
	// last: from its start on, long before its state is restored. None means that it
	// knows no member.
	Addresses []string
	// QuorumMissing is for how long no quorum has been in reach; 0 if one is.
	QuorumMissing time.Duration
	// StorageFull says that free space is below the mark on this node or on a
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
	// Join takes in a node that waits, by a token unless that is empty.
	Join(ctx context.Context, req JoinRequest, token string) (*raftlogv1.Member, error)
	// Remove removes a member, in the name of principal unless that is nil, and
	// returns the index of the log entry. Without force it is refused if too few
	// voters would answer afterwards.
	Remove(ctx context.Context, tag string, force bool, principal *string) (logIndex uint64, err error)
	// Transfer hands leadership to a voter, or to any if tag is empty, and
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
	// MembershipIndex is the log index of the last change of the members that their
	// clients see; 0 if there was none since there are such indexes. Statuses with
	// equal ones have the same members, addresses and votes, on all nodes.
	MembershipIndex uint64
}

// GetStatus shows the cluster as this node sees it. It needs no quorum, takes no
// part in the limit on calls in flight, and never fails: it is what an operator
// asks when all else does.
func (s *Service) GetStatus() Status {
	status := Status{ClusterStatus: s.cfg.Cluster.Status(), Version: s.cfg.Version}
	status.StateIndex, status.StateHash = s.cfg.State.Hash()
	status.LogFormat = s.cfg.State.Format()
	status.Counts = s.cfg.State.Counts()
	status.Self = Member{Tag: status.SelfTag, ID: status.SelfID}
	members, index := s.cfg.State.Membership()
	status.MembershipIndex = index
	for _, m := range members {
		member := memberOf(m, status.ClusterStatus)
		if member.ID == status.SelfID {
			status.Self = member
		}
		if !m.GetRemoved() {
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

// ListMembersResponse is one page of members, by tag.
type ListMembersResponse struct {
	Members       []Member
	NextPageToken string
	LogIndex      uint64
}

// ListMembers lists the members.
func (s *Service) ListMembers(ctx context.Context, req ListMembersRequest) (ListMembersResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListMembersResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listMembers(ctx, req)
	return res, s.finish(ctx, "ListMembers", err)
}

func (s *Service) listMembers(ctx context.Context, req ListMembersRequest) (ListMembersResponse, error) {
	c := cursor{scope: listMembers, prefix: ""}
	if req.IncludeRemoved {
		// Another list, so the tokens of one are refused by the other.
		c.database = "removed"
	}
	c, err := c.at(req.PageSize, req.PageToken)
	if err != nil {
		return ListMembersResponse{}, err
	}
	index, err := s.settle(ctx, req.Consistency)
	if err != nil {
		return ListMembersResponse{}, err
	}
	status := s.cfg.Cluster.Status()
	members := make([]Member, 0, c.size+1)
	all := s.cfg.State.Members()
	slices.SortFunc(all, func(a, b *raftlogv1.Member) int { return docid.CompareNodeTags(a.GetTag(), b.GetTag()) })
	for _, m := range all {
		if docid.CompareNodeTags(m.GetTag(), c.after) > 0 && (req.IncludeRemoved || !m.GetRemoved()) && len(members) <= c.size {
			members = append(members, memberOf(m, status))
		}
	}
	page, next := cut(c, members, func(m Member) string { return m.Tag })
	return ListMembersResponse{Members: page, NextPageToken: next, LogIndex: index}, nil
}

// JoinRequest names the node to take in.
type JoinRequest struct {
	// Address is the gRPC address of the waiting node, host:port.
	Address string
	// Tag is the tag it shall have; empty for the one it asks for, or the next.
	Tag string
	// Watcher says that it shall never vote.
	Watcher bool
}

// Join takes a waiting node into the cluster.
func (s *Service) Join(ctx context.Context, req JoinRequest) (Member, error) {
	member, err := s.join(ctx, req)
	return member, s.finish(ctx, "Join", err)
}

func (s *Service) join(ctx context.Context, req JoinRequest) (Member, error) {
	if err := checkAddress(req.Address); err != nil {
		return Member{}, err
	}
	if req.Tag != "" {
		if err := checkNodeTag(req.Tag); err != nil {
			return Member{}, err
		}
	}
	if err := s.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return Member{}, err
	}
	ctx, cancel := s.boundedChange(ctx)
	defer cancel()
	var joined Member
	err := s.audited(ctx, audit.Record{Event: audit.EventJoin, Name: req.Tag, After: req}, func() (change, error) {
		token, err := s.tokenFor(ctx, req)
		if err != nil {
			return change{}, err
		}
		defer s.expected.expect(req.Tag)()
		m, err := s.cfg.Cluster.Join(ctx, req, token)
		if err != nil {
			return change{}, proposalError(err, false)
		}
		joined = memberOf(m, s.cfg.Cluster.Status())
		return change{after: joined}, nil
	})
	return joined, err
}

// Remove removes a member for good and returns the index of the log entry. Without
// force it is refused if too few voters would answer afterwards.
func (s *Service) Remove(ctx context.Context, tag string, force bool) (uint64, error) {
	index, err := s.remove(ctx, tag, force)
	return index, s.finish(ctx, "Remove", err)
}

func (s *Service) remove(ctx context.Context, tag string, force bool) (uint64, error) {
	if err := checkNodeTag(tag); err != nil {
		return 0, err
	}
	if err := s.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return 0, err
	}
	ctx, cancel := s.boundedChange(ctx)
	defer cancel()
	var index uint64
	err := s.audited(ctx, audit.Record{Event: audit.EventRemove, Name: tag, Force: force}, func() (done change, err error) {
		done.before = s.memberByTag(tag)
		index, err = s.proposeRemoval(ctx, tag, force)
		done.index = index
		return done, err
	})
	return index, err
}

// proposeRemoval does for a removal what propose does for other operations: the
// state judges the caller.
func (s *Service) proposeRemoval(ctx context.Context, tag string, force bool) (uint64, error) {
	principal := s.principal(ctx, false)
	index, err := s.cfg.Cluster.Remove(ctx, tag, force, principal)
	if unnamed(err, principal) {
		index, err = s.cfg.Cluster.Remove(ctx, tag, force, s.author(ctx))
	}
	if err != nil {
		return 0, proposalError(err, false)
	}
	return index, nil
}

// memberByTag returns the present member with a tag as this node knows it, or nil.
func (s *Service) memberByTag(tag string) any {
	for _, m := range s.cfg.State.Members() {
		if m.GetTag() == tag && !m.GetRemoved() {
			return memberOf(m, s.cfg.Cluster.Status())
		}
	}
	return nil
}

// Transfer hands leadership to the voter with this tag, or to any if it is
// empty, and returns the new leader's tag.
func (s *Service) Transfer(ctx context.Context, tag string) (string, error) {
	leader, err := s.transfer(ctx, tag)
	return leader, s.finish(ctx, "Transfer", err)
}

func (s *Service) transfer(ctx context.Context, tag string) (string, error) {
	if tag != "" {
		if err := checkNodeTag(tag); err != nil {
			return "", err
		}
	}
	if err := s.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return "", err
	}
	ctx, cancel := s.boundedChange(ctx)
	defer cancel()
	leader, err := s.cfg.Cluster.Transfer(ctx, tag)
	if err != nil {
		return "", proposalError(err, false)
	}
	return leader, nil
}

// changeTimeout bounds a change of the membership: a node that is invited has to
// find its place, fetch the state, and answer.
const changeTimeout = 20 * time.Second

func (s *Service) boundedChange(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(s.cfg.CallTimeout, changeTimeout))
}

func checkNodeTag(tag string) error {
	if err := docid.ValidateNodeTag(tag); err != nil {
		return badForm(err, "tag")
	}
	return nil
}

// maxAddressBytes is the length of the longest address; a host name has at most
// 255 bytes.
const maxAddressBytes = 512

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || number == 0 || host == "" || len(address) > maxAddressBytes {
		return invalid(ReasonInvalidAddress, "address", "the address is not host:port")
	}
	return nil
}
