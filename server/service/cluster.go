package service

import (
	"context"
	"encoding/hex"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/reserve"
)

// Member is a node of the cluster, now or formerly.
type Member struct {
	Tag string
	// ID is the node's Raft id, 32 hexadecimal digits.
	ID                                    string
	GRPCAddress, RaftAddress, HTTPAddress string
	Role                                  idnodev1.Role
	// Votes is from the replicated record, the same on all nodes; Role is the current view of the
	// node asked.
	Votes bool
	// LogFormat is the newest log format the member can read.
	LogFormat uint32
	Condition
	// Behind is the number of log entries by which its state is behind the furthest state.
	Behind uint64
}

// Condition is how a member is, as the node asked heard it last.
type Condition struct {
	// Answer is its answer to the last ping; nil if it did not answer. The node asked answers
	// itself.
	Answer *peerv1.PingResponse
	// SilentFor is the time since its last answer; 0 while it answers.
	SilentFor time.Duration
	// Problem is where it does not answer, and why, as in "at b:7400, as registered (connection
	// refused)"; empty if that is not known, or does not matter.
	Problem string
	// StateDiffers means that its state differed from that of the node asked at the same log index.
	StateDiffers bool
}

// Reachable reports whether the member answered the last ping.
func (c Condition) Reachable() bool { return c.Answer != nil }

// ClusterStatus is the cluster as a node's Raft part sees it, without asking others.
type ClusterStatus struct {
	// ClusterID is 32 hexadecimal digits; empty before the cluster was formed.
	ClusterID string
	// SelfID is this node's Raft id, 32 hexadecimal digits.
	SelfID string
	// SelfTag is this node's tag, or the requested tag.
	SelfTag   string
	LeaderTag string
	Term      uint64
	HasQuorum bool
	// Unserved is why the log does not serve this node, though a quorum is in reach; nil if it does.
	Unserved error
	// LastContact is the time since the last message from the leader; 0 on the
	// leader.
	LastContact time.Duration
	CommitIndex uint64
	// VoterTags are the members that vote, as Raft's configuration has it; nil
	// leaves it to the members' own records.
	VoterTags []string
	// Known are the members last known to the node, including removed ones. They are available from
	// its start, long before its state is restored.
	Known []*raftlogv1.Member
	// QuorumMissing is the time without a quorum in reach; 0 with a quorum.
	QuorumMissing time.Duration
	// StorageFull means that free space is below the low-water mark on this node or on a quorum.
	// FullDisks describes the effect on callers.
	StorageFull bool
	// Warnings are problems of the node's configuration, found at its start. AllWarnings has more.
	Warnings []string
	// Conditions are the members' conditions by tag, this node's included, all of the time
	// ConditionsAt.
	Conditions   map[string]Condition
	ConditionsAt time.Time
}

// Furthest is the newest log entry that the state of any member in reach has. The
// commit index is often some entries above it: Raft's own, which are no state's.
func (c ClusterStatus) Furthest() uint64 {
	var furthest uint64
	for _, m := range c.Conditions {
		furthest = max(furthest, m.Answer.GetAppliedIndex())
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
	// SetWatcher makes a member a watcher, or takes that back; as RemoveMember.
	SetWatcher(ctx context.Context, tag string, watcher, force bool, principal *string) (logIndex uint64, err error)
	// Transfer transfers leadership to a voter, or to any if tag is empty, and
	// returns the new leader's tag.
	Transfer(ctx context.Context, tag string) (leader string, err error)
}

// Status is one node's view of the cluster.
type Status struct {
	ClusterStatus
	Self Member
	// StateIndex and StateHash are a pair: states of two nodes with equal indexes have equal
	// hashes.
	StateIndex, StateHash uint64
	LogFormat             uint32
	Counts                fsm.Counts
	Version               string
	// Members are those present, sorted by tag as the state sorts them.
	Members []Member
	// Reserve is the total of the node's reserve; nil for a node without one.
	Reserve *reserve.Total
	// MembershipIndex is the log index of the last change of the members that clients see; 0
	// if there was no change since there are such indexes. Statuses with equal indexes have
	// the same members, addresses and votes, on all nodes.
	MembershipIndex uint64
}

type members struct {
	*base
	cluster Cluster
	version string
	hosts   []string
	reserve func() *reserve.Total
	// refusals bounds the lines about nodes that are not let in: a caller with a node's
	// certificate can ask without end.
	refusals rate.Sometimes
}

// GetStatus is Status for the API.
func (m *members) GetStatus(ctx context.Context, _ *idnodev1.GetStatusRequest) (*idnodev1.GetStatusResponse, error) {
	return m.Status().Message(m.MayRead(ctx)), nil
}

// Message returns the status as the API has it, with the counts of all databases if they are the caller's business.
func (st Status) Message(counts bool) *idnodev1.GetStatusResponse {
	c := st.Counts
	res := &idnodev1.GetStatusResponse{
		ClusterId: st.ClusterID, Self: st.Self.message(), LeaderTag: st.LeaderTag, Term: st.Term,
		HasQuorum: st.HasQuorum, LastContact: durationpb.New(st.LastContact),
		AppliedIndex: st.StateIndex, CommitIndex: st.CommitIndex, StateHash: st.StateHash,
		LogFormat: st.LogFormat, Version: st.Version, Warnings: st.AllWarnings(), StorageFull: st.StorageFull,
	}
	if counts {
		res.Counts = &idnodev1.StateCounts{
			Databases: int64(c.Databases), Identities: int64(c.Identities), DeletedIdentities: int64(c.HiddenIdentities),
			Hilos: int64(c.HiLos), Claims: int64(c.Claims), RequestIds: int64(c.Requests), Bytes: c.NameBytes,
			Series: int64(c.Series), SeriesKeys: c.SeriesKeys,
		}
	}
	if st.Unserved != nil {
		res.Warnings = append(res.Warnings, "log not served: "+st.Unserved.Error())
	}
	for _, member := range st.Members {
		res.Members = append(res.Members, member.message())
	}
	return res
}

// Status shows the cluster as this node sees it. It needs no quorum, does not count as a call in
// flight, and never fails: operators use it when everything else fails.
func (m *members) Status() Status {
	status := Status{ClusterStatus: m.cluster.Status(), Version: m.version, Reserve: m.reserve()}
	status.StateIndex, status.StateHash = m.state.Hash()
	status.LogFormat = m.state.Format()
	status.Counts = m.state.Counts()
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

// Revision is the commit that the program was built from, or "".
func Revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func memberOf(m *raftlogv1.Member, status ClusterStatus) Member {
	condition := status.Conditions[m.GetTag()]
	member := Member{
		Tag: m.GetTag(), ID: hex.EncodeToString(m.GetId()),
		GRPCAddress: m.GetGrpcAddress(), RaftAddress: m.GetRaftAddress(), HTTPAddress: m.GetHttpAddress(),
		Role: roleOf(m, status), Votes: m.GetVoter(), LogFormat: m.GetLogFormat(),
		Condition: condition,
	}
	if condition.Reachable() {
		member.Behind = status.Furthest() - condition.Answer.GetAppliedIndex()
	}
	return member
}

func (m Member) message() *idnodev1.Member {
	out := &idnodev1.Member{
		Tag: m.Tag, Id: m.ID, GrpcAddress: m.GRPCAddress, RaftAddress: m.RaftAddress,
		HttpAddress: m.HTTPAddress, Role: m.Role, LogFormat: m.LogFormat,
		Reachable: m.Reachable(), AppliedIndex: m.Answer.GetAppliedIndex(), Behind: m.Behind,
		StorageFull: m.Answer.GetStorageFull(), StorageSlow: m.Answer.GetStorageSlow(), Version: m.Answer.GetVersion(),
	}
	if m.Reachable() {
		out.LeaderPriority = proto.Uint32(m.Answer.GetLeaderPriority())
	}
	for _, c := range m.Answer.GetFigures().GetCallers() {
		out.Callers = append(out.Callers, &idnodev1.CallersOfCA{Ca: c.GetCa(), Connections: c.GetConnections()})
	}
	if at := m.CertificateExpiresAt(); !at.IsZero() {
		out.CertificateExpiresAt = timestamppb.New(at)
	}
	if m.SilentFor > 0 {
		out.UnreachableFor = durationpb.New(m.SilentFor)
	}
	return out
}

// CertificateExpiresAt is when the member's certificate expires; zero if unknown.
func (m Member) CertificateExpiresAt() time.Time {
	if m.Answer.GetCertificateEnds() == 0 {
		return time.Time{}
	}
	return time.Unix(m.Answer.GetCertificateEnds(), 0)
}

func roleOf(m *raftlogv1.Member, status ClusterStatus) idnodev1.Role {
	votes := m.GetVoter()
	if status.VoterTags != nil {
		votes = slices.Contains(status.VoterTags, m.GetTag())
	}
	switch {
	case m.GetRemoved():
		return idnodev1.Role_ROLE_REMOVED
	case m.GetTag() == status.LeaderTag:
		return idnodev1.Role_ROLE_LEADER
	case m.GetWatcher():
		return idnodev1.Role_ROLE_WATCHER
	case votes:
		return idnodev1.Role_ROLE_FOLLOWER
	default:
		return idnodev1.Role_ROLE_JOINING
	}
}

// ListMembers lists the members.
func (m *members) ListMembers(ctx context.Context, req *idnodev1.ListMembersRequest) (*idnodev1.ListMembersResponse, error) {
	return admission.Call(ctx, m.Control, "ListMembers", req, m.listMembers)
}

func (m *members) listMembers(ctx context.Context, req *idnodev1.ListMembersRequest) (*idnodev1.ListMembersResponse, error) {
	c := cursor{scope: listMembers}
	if req.GetIncludeRemoved() {
		// Another list, so the tokens of one list are refused by the other.
		c.database = "removed"
	}
	c, err := c.at(int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	index, err := m.settle(ctx, req.GetConsistency())
	if err != nil {
		return nil, err
	}
	status, known := m.cluster.Status(), m.state.Members()
	if len(known) == 0 {
		known = slices.Clone(status.Known)
	}
	found := slices.DeleteFunc(known, func(k *raftlogv1.Member) bool {
		return docid.CompareNodeTags(k.GetTag(), c.after) <= 0 || k.GetRemoved() && !req.GetIncludeRemoved()
	})
	slices.SortFunc(found, func(a, b *raftlogv1.Member) int { return docid.CompareNodeTags(a.GetTag(), b.GetTag()) })
	page := cut(c, found, index, func(k *raftlogv1.Member) (string, *idnodev1.Member) {
		return k.GetTag(), memberOf(k, status).message()
	})
	return &idnodev1.ListMembersResponse{Members: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, nil
}

// RemoveMember removes a member permanently. Without force it is refused if too few voters
// would answer afterwards.
func (m *members) RemoveMember(ctx context.Context, req *idnodev1.RemoveMemberRequest) (*idnodev1.RemoveMemberResponse, error) {
	return changeMembers(ctx, m, "RemoveMember", req, m.remove)
}

func (m *members) remove(ctx context.Context, req *idnodev1.RemoveMemberRequest) (*idnodev1.RemoveMemberResponse, error) {
	tag, force := req.GetTag(), req.GetForce()
	record := audit.Record{Event: audit.EventRemoveMember, Name: tag, Force: force}
	index, err := m.changeMember(ctx, record, nil, func(principal *string) (uint64, error) {
		return m.cluster.RemoveMember(ctx, tag, force, principal)
	})
	return &idnodev1.RemoveMemberResponse{LogIndex: index}, err
}

// SetWatcher makes a member a watcher or a voter. Losing a vote is subject to the same checks as a
// removal.
func (m *members) SetWatcher(ctx context.Context, req *idnodev1.SetWatcherRequest) (*idnodev1.SetWatcherResponse, error) {
	return changeMembers(ctx, m, "SetWatcher", req, m.setWatcher)
}

func (m *members) setWatcher(ctx context.Context, req *idnodev1.SetWatcherRequest) (*idnodev1.SetWatcherResponse, error) {
	if req.Watcher == nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidRequest, "watcher", "whether the member is a watcher is missing")
	}
	tag, watcher, force := req.GetTag(), req.GetWatcher(), req.GetForce()
	record := audit.Record{Event: audit.EventSetWatcher, Name: tag, Force: force}
	index, err := m.changeMember(ctx, record, recordedWatcher{watcher}, func(principal *string) (uint64, error) {
		return m.cluster.SetWatcher(ctx, tag, watcher, force, principal)
	})
	return &idnodev1.SetWatcherResponse{LogIndex: index}, err
}

// recordedWatcher is the audit log's record of the change.
type recordedWatcher struct {
	Watcher bool `json:"watcher"`
}

// changeMember makes a change of the member that record names, which becomes after.
func (m *members) changeMember(
	ctx context.Context, record audit.Record, after any, do func(principal *string) (uint64, error),
) (index uint64, err error) {
	if err := checkNodeTag(record.Name); err != nil {
		return 0, err
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return 0, err
	}
	err = m.Audited(ctx, record, func() (done admission.Change, err error) {
		done.Before, done.After = m.memberByTag(record.Name), after
		err = m.proposeAsCaller(ctx, false, false, func(principal *string) (err error) {
			index, err = do(principal)
			return err
		})
		done.Index = index
		return done, err
	})
	return index, err
}

// memberByTag returns the present member with a tag, from this node's state, or nil.
func (m *members) memberByTag(tag string) any {
	for _, known := range m.state.Members() {
		if known.GetTag() == tag && !known.GetRemoved() {
			shown := memberOf(known, m.cluster.Status())
			return recordedMember{shown.Tag, shown.ID, shown.GRPCAddress, shown.RaftAddress, shown.HTTPAddress, shown.Votes, shown.Reachable()}
		}
	}
	return nil
}

// recordedMember is a member as the audit log has it.
type recordedMember struct {
	Tag       string `json:"tag"`
	ID        string `json:"id"`
	GRPC      string `json:"grpc"`
	Raft      string `json:"raft"`
	HTTP      string `json:"http,omitempty"`
	Votes     bool   `json:"votes"`
	Reachable bool   `json:"reachable"`
}

// TransferLeadership transfers leadership to the voter with this tag, or to any if it is
// empty.
func (m *members) TransferLeadership(
	ctx context.Context, req *idnodev1.TransferLeadershipRequest,
) (*idnodev1.TransferLeadershipResponse, error) {
	return changeMembers(ctx, m, "Transfer", req, m.transfer)
}

func (m *members) transfer(ctx context.Context, req *idnodev1.TransferLeadershipRequest) (*idnodev1.TransferLeadershipResponse, error) {
	if req.GetTag() != "" {
		if err := checkNodeTag(req.GetTag()); err != nil {
			return nil, err
		}
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	leader, err := m.cluster.Transfer(ctx, req.GetTag())
	if err != nil {
		return nil, proposalError(err, false)
	}
	return &idnodev1.TransferLeadershipResponse{LeaderTag: leader}, nil
}

// changeTimeout bounds a removal and a transfer: a leader that is removed transfers
// leadership first.
const changeTimeout = 20 * time.Second

// changeMembers makes a call that takes no part in the limit on calls in flight.
func changeMembers[Request, Response any](
	ctx context.Context, m *members, useCase string, req Request, do func(context.Context, Request) (*Response, error),
) (*Response, error) {
	within, cancel := context.WithTimeout(ctx, max(m.timeout, changeTimeout))
	defer cancel()
	res, err := do(within, req)
	if err != nil {
		return nil, m.Finish(ctx, useCase, err)
	}
	return res, nil
}

func checkNodeTag(tag string) error {
	if err := docid.ValidateNodeTag(tag); err != nil {
		return badForm(err, "tag")
	}
	return nil
}
