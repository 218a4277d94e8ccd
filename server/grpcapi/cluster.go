package grpcapi

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// clusterServer adapts the use cases of the cluster.
type clusterServer struct {
	idnodev1.UnimplementedClusterServiceServer
	service *service.Service
}

func (s clusterServer) GetStatus(context.Context, *idnodev1.GetStatusRequest) (*idnodev1.GetStatusResponse, error) {
	st := s.service.GetStatus()
	return &idnodev1.GetStatusResponse{
		ClusterId: st.ClusterID, Self: member(st.Self), LeaderTag: st.LeaderTag, Term: st.Term,
		HasQuorum: st.HasQuorum, LastContact: durationpb.New(st.LastContact),
		AppliedIndex: st.StateIndex, CommitIndex: st.CommitIndex, StateHash: st.StateHash,
		LogFormat: st.LogFormat, Counts: counts(st), Version: st.Version, Members: members(st.Members),
		Warnings: st.Warnings, StorageFull: st.StorageFull,
	}, nil
}

func counts(st service.Status) *idnodev1.StateCounts {
	c := st.Counts
	return &idnodev1.StateCounts{
		Databases: int64(c.Databases), Identities: int64(c.Identities) + int64(c.HiddenIdentities),
		Hilos: int64(c.HiLos), Claims: int64(c.Claims), RequestIds: int64(c.Requests), Bytes: c.NameBytes,
		Series: int64(c.Series), SeriesKeys: c.SeriesKeys,
	}
}

func members(list []service.Member) []*idnodev1.Member {
	var out []*idnodev1.Member
	for _, m := range list {
		out = append(out, member(m))
	}
	return out
}

func member(m service.Member) *idnodev1.Member {
	out := &idnodev1.Member{
		Tag: m.Tag, Id: m.ID, GrpcAddress: m.GRPCAddress, RaftAddress: m.RaftAddress,
		HttpAddress: m.HTTPAddress, Role: roleOf(m.Role), LogFormat: m.LogFormat,
		Reachable: m.Reachable, AppliedIndex: m.AppliedIndex, Behind: m.Behind,
		StorageFull: m.StorageFull, StorageSlow: m.StorageSlow, LeaderPriority: m.LeaderPriority, Version: m.Version,
	}
	if m.SilentFor > 0 {
		out.UnreachableFor = durationpb.New(m.SilentFor)
	}
	if !m.CertificateEnds.IsZero() {
		out.CertificateDays = proto.Int32(int32(math.Floor(time.Until(m.CertificateEnds).Hours() / 24)))
	}
	return out
}

func roleOf(r service.Role) idnodev1.Role {
	switch r {
	case service.RoleLeader:
		return idnodev1.Role_ROLE_LEADER
	case service.RoleFollower:
		return idnodev1.Role_ROLE_FOLLOWER
	case service.RoleJoining:
		return idnodev1.Role_ROLE_JOINING
	case service.RoleWatcher:
		return idnodev1.Role_ROLE_WATCHER
	case service.RoleRemoved:
		return idnodev1.Role_ROLE_REMOVED
	default:
		return idnodev1.Role_ROLE_UNSPECIFIED
	}
}

func (s clusterServer) ListMembers(ctx context.Context, req *idnodev1.ListMembersRequest) (*idnodev1.ListMembersResponse, error) {
	res, err := s.service.ListMembers(ctx, service.ListMembersRequest{
		IncludeRemoved: req.GetIncludeRemoved(), PageSize: int(req.GetPageSize()),
		PageToken: req.GetPageToken(), Consistency: consistencyOf(req.GetConsistency()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ListMembersResponse{
		Members: members(res.Items), NextPageToken: res.NextPageToken, LogIndex: res.LogIndex,
	}, nil
}

func (s clusterServer) CreateJoinToken(ctx context.Context, req *idnodev1.CreateJoinTokenRequest) (*idnodev1.CreateJoinTokenResponse, error) {
	res, err := s.service.CreateJoinToken(ctx, service.CreateJoinTokenRequest{Tag: req.GetTag(), Watcher: req.GetWatcher(), For: req.GetValidFor().AsDuration()})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.CreateJoinTokenResponse{Token: res.Token, ExpiresAt: timestamppb.New(res.Expires), LogIndex: res.LogIndex}, nil
}

func (s clusterServer) RemoveMember(ctx context.Context, req *idnodev1.RemoveMemberRequest) (*idnodev1.RemoveMemberResponse, error) {
	index, err := s.service.RemoveMember(ctx, req.GetTag(), req.GetForce())
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.RemoveMemberResponse{LogIndex: index}, nil
}

func (s clusterServer) TransferLeadership(ctx context.Context, req *idnodev1.TransferLeadershipRequest) (*idnodev1.TransferLeadershipResponse, error) {
	leader, err := s.service.Transfer(ctx, req.GetTag())
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.TransferLeadershipResponse{LeaderTag: leader}, nil
}

func (s clusterServer) ListSettings(ctx context.Context, req *idnodev1.ListSettingsRequest) (*idnodev1.ListSettingsResponse, error) {
	res, err := s.service.ListSettings(ctx, consistencyOf(req.GetConsistency()))
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ListSettingsResponse{LogIndex: res.LogIndex}
	for _, setting := range res.Items {
		answer.Settings = append(answer.Settings, settingOf(setting))
	}
	return answer, nil
}

func settingOf(s service.Setting) *idnodev1.Setting {
	return &idnodev1.Setting{Key: s.Key, Value: s.Value, DefaultValue: s.Default, Description: s.Description}
}

func (s clusterServer) GetRoles(ctx context.Context, req *idnodev1.GetRolesRequest) (*idnodev1.GetRolesResponse, error) {
	res, err := s.service.GetRoles(ctx, consistencyOf(req.GetConsistency()))
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.GetRolesResponse{Table: roleTable(res.Roles), SetAt: res.SetAt, LogIndex: res.LogIndex}, nil
}

func (s clusterServer) SetRoles(ctx context.Context, req *idnodev1.SetRolesRequest) (*idnodev1.SetRolesResponse, error) {
	index, err := s.service.SetRoles(ctx, service.SetRolesRequest{Roles: rolesOf(req.GetTable()), Expected: req.Expected})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.SetRolesResponse{LogIndex: index}, nil
}

func (s clusterServer) UpdateSetting(ctx context.Context, req *idnodev1.UpdateSettingRequest) (*idnodev1.UpdateSettingResponse, error) {
	res, err := s.service.UpdateSetting(ctx, req.GetKey(), req.GetValue())
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.UpdateSettingResponse{Setting: settingOf(res.Setting), LogIndex: res.LogIndex}, nil
}
