package grpcapi

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/identity"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/service"
)

// idsServer adapts the use cases of ids.
type idsServer struct {
	idnodev1.UnimplementedIdsServiceServer
	service *service.Service
	// log and exchanges are for the calls of streams, which the server's own
	// interceptors do not see.
	log       *requestLog
	exchanges *exchanges
}

func (s *idsServer) Generate(ctx context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	res, err := s.service.Generate(ctx, generateRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.GenerateResponse{
		Ids: res.IDs, Blocks: idBlocks(res.Blocks), Strategy: strategyOf(res.Strategy),
		NodeTag: res.NodeTag, LogIndex: res.LogIndex,
	}, nil
}

func generateRequest(req *idnodev1.GenerateRequest) service.GenerateRequest {
	return service.GenerateRequest{
		Database: req.GetDatabase(), Template: req.GetTemplate(), Separator: req.GetSeparator(),
		Count: req.GetCount(), Claim: req.GetClaim(), RequestID: requestID(req.GetRequestId()),
		BlocksOnly: req.GetBlocksOnly(),
	}
}

func idBlocks(blocks []service.IDBlock) []*idnodev1.IdBlock {
	if len(blocks) == 0 {
		return nil
	}
	list := make([]*idnodev1.IdBlock, len(blocks))
	for i, b := range blocks {
		list[i] = &idnodev1.IdBlock{Prefix: b.Prefix, First: b.First, Last: b.Last, Width: int32(b.Width), Suffix: b.Suffix}
	}
	return list
}

func strategyOf(kind docid.Kind) idnodev1.Strategy {
	switch kind {
	case docid.GUID:
		return idnodev1.Strategy_STRATEGY_GUID
	case docid.ServerSide:
		return idnodev1.Strategy_STRATEGY_SERVER_SIDE
	case docid.Identity:
		return idnodev1.Strategy_STRATEGY_IDENTITY
	case docid.Semantic:
		return idnodev1.Strategy_STRATEGY_SEMANTIC
	default:
		return idnodev1.Strategy_STRATEGY_UNSPECIFIED
	}
}

// requestID translates a request id; one that is there but empty stays one, and
// is refused by the service.
func requestID(id *idnodev1.RequestId) *service.RequestID {
	if id == nil {
		return nil
	}
	return &service.RequestID{ID: id.GetId(), Retry: id.RetrySince != nil, Since: id.GetRetrySince()}
}

func (s *idsServer) NextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	res, err := s.service.NextIdentity(ctx, nextIdentityRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	return nextIdentityResponse(res), nil
}

func nextIdentityRequest(req *idnodev1.NextIdentityRequest) service.NextIdentityRequest {
	return service.NextIdentityRequest{
		Database: req.GetDatabase(), Name: req.GetName(), Count: req.GetCount(),
		Separator: req.GetSeparator(), RequestID: requestID(req.GetRequestId()),
	}
}

func nextIdentityResponse(res service.NextIdentityResponse) *idnodev1.NextIdentityResponse {
	return &idnodev1.NextIdentityResponse{Blocks: valueBlocks(res.Blocks), LogIndex: res.LogIndex}
}

func valueBlocks(blocks []identity.Block) []*idnodev1.ValueBlock {
	list := make([]*idnodev1.ValueBlock, len(blocks))
	for i, b := range blocks {
		list[i] = &idnodev1.ValueBlock{First: b.First, Last: b.Last}
	}
	return list
}

func (s *idsServer) SeedIdentity(ctx context.Context, req *idnodev1.SeedIdentityRequest) (*idnodev1.SeedIdentityResponse, error) {
	res, err := s.service.SeedIdentity(ctx, service.SeedIdentityRequest{
		Database: req.GetDatabase(), Name: req.GetName(), Value: req.GetValue(), Force: req.GetForce(),
		Expected: req.Expected, RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.SeedIdentityResponse{Value: res.Value, LogIndex: res.LogIndex}, nil
}

func (s *idsServer) GetIdentity(ctx context.Context, req *idnodev1.GetIdentityRequest) (*idnodev1.GetIdentityResponse, error) {
	res, err := s.service.GetIdentity(ctx, service.GetIdentityRequest{
		Database: req.GetDatabase(), Name: req.GetName(), Consistency: consistencyOf(req.GetConsistency()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.GetIdentityResponse{
		Identity: &idnodev1.Identity{Name: res.Identity.Name, Value: res.Identity.Value}, LogIndex: res.LogIndex,
	}, nil
}

func (s *idsServer) ListIdentities(ctx context.Context, req *idnodev1.ListIdentitiesRequest) (*idnodev1.ListIdentitiesResponse, error) {
	res, err := s.service.ListIdentities(ctx, listRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ListIdentitiesResponse{NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}
	for _, i := range res.Items {
		answer.Identities = append(answer.Identities, &idnodev1.Identity{Name: i.Name, Value: i.Value})
	}
	return answer, nil
}

func (s *idsServer) DeleteIdentity(ctx context.Context, req *idnodev1.DeleteIdentityRequest) (*idnodev1.DeleteIdentityResponse, error) {
	res, err := s.service.DeleteIdentity(ctx, service.DeleteIdentityRequest{
		Database: req.GetDatabase(), Name: req.GetName(), Forget: req.GetForget(), RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.DeleteIdentityResponse{Value: res.Value, LogIndex: res.LogIndex}, nil
}

func (s *idsServer) NextRange(ctx context.Context, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
	at, has, err := lastRangeAt(req.GetLastRangeAt())
	if err != nil {
		return nil, statusError(err)
	}
	res, err := s.service.NextRange(ctx, service.NextRangeRequest{
		Database: req.GetDatabase(), Tag: req.GetTag(), Separator: req.GetSeparator(),
		LastSize: req.GetLastSize(), HasLastRange: has, LastRangeAt: at, LastMax: req.GetLastMax(),
		Size: req.GetSize(), Label: req.GetLabel(), RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.NextRangeResponse{
		Prefix: res.Prefix, Low: res.Low, High: res.High, Size: res.Size, NodeTag: res.NodeTag,
		RangeAt: timestamppb.New(res.RangeAt), Token: res.Token[:], LogIndex: res.LogIndex, FromReserve: res.FromReserve,
	}, nil
}

// lastRangeAt translates a time that may be missing. What is no time in the
// sense of google.protobuf.Timestamp would otherwise turn into another one.
func lastRangeAt(t *timestamppb.Timestamp) (at time.Time, has bool, err error) {
	if t == nil {
		return time.Time{}, false, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, false, &service.Error{
			Code: service.InvalidArgument, Reason: service.ReasonInvalidLastRangeAt,
			Field: "last_range_at", Message: "last_range_at is not a valid time",
		}
	}
	return t.AsTime(), true, nil
}

func (s *idsServer) ReturnRange(ctx context.Context, req *idnodev1.ReturnRangeRequest) (*idnodev1.ReturnRangeResponse, error) {
	res, err := s.service.ReturnRange(ctx, service.ReturnRangeRequest{
		Database: req.GetDatabase(), Tag: req.GetTag(), Low: req.GetLow(), High: req.GetHigh(), Last: req.GetLast(),
		Token: req.GetToken(), WithoutToken: req.GetWithoutToken(), RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ReturnRangeResponse{Returned: res.Returned, Max: res.Max, LogIndex: res.LogIndex}, nil
}

func (s *idsServer) GetHiLo(ctx context.Context, req *idnodev1.GetHiLoRequest) (*idnodev1.GetHiLoResponse, error) {
	res, err := s.service.GetHiLo(ctx, service.GetHiLoRequest{
		Database: req.GetDatabase(), Tag: req.GetTag(), Consistency: consistencyOf(req.GetConsistency()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.GetHiLoResponse{Hilo: &idnodev1.HiLo{Tag: res.HiLo.Tag, Max: res.HiLo.Max}, LogIndex: res.LogIndex}, nil
}

var rangeStates = map[service.RangeState]idnodev1.RangeState{
	service.RangeOutstanding: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, service.RangeReserved: idnodev1.RangeState_RANGE_STATE_RESERVED,
	service.RangeNotRemembered: idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED, service.RangeNotIssued: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED,
}

func (s *idsServer) WhoHolds(ctx context.Context, req *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	res, err := s.service.WhoHolds(ctx, service.WhoHoldsRequest{
		Database: req.GetDatabase(), Tag: req.GetTag(), Number: req.GetNumber(), Consistency: consistencyOf(req.GetConsistency()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.WhoHoldsResponse{State: rangeStates[res.State], Low: res.Range.Low, High: res.Range.High, LogIndex: res.LogIndex}
	if h := res.Holder; res.Known {
		answer.Holder = &idnodev1.RangeHolder{Label: h.Label, Principal: h.Principal, NodeTag: h.Node, IssuedAt: timestamppb.New(h.Issued)}
	}
	return answer, nil
}

func (s *idsServer) SetHiLo(ctx context.Context, req *idnodev1.SetHiLoRequest) (*idnodev1.SetHiLoResponse, error) {
	res, err := s.service.SetHiLo(ctx, service.SetHiLoRequest{
		Database: req.GetDatabase(), Tag: req.GetTag(), Max: req.GetMax(), Expected: req.GetExpected(),
		RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.SetHiLoResponse{Max: res.Value, LogIndex: res.LogIndex}, nil
}

func (s *idsServer) ListHiLo(ctx context.Context, req *idnodev1.ListHiLoRequest) (*idnodev1.ListHiLoResponse, error) {
	res, err := s.service.ListHiLo(ctx, listRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ListHiLoResponse{NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}
	for _, h := range res.Items {
		answer.Hilos = append(answer.Hilos, &idnodev1.HiLo{Tag: h.Tag, Max: h.Max})
	}
	return answer, nil
}

func (s *idsServer) ListReserves(ctx context.Context, req *idnodev1.ListReservesRequest) (*idnodev1.ListReservesResponse, error) {
	res, err := s.service.ListReserves(ctx, service.ListRequest{PageSize: int(req.GetPageSize()), PageToken: req.GetPageToken()})
	if err != nil {
		return nil, statusError(err)
	}
	answer := &idnodev1.ListReservesResponse{NodeTag: res.NodeTag, NextPageToken: res.NextPageToken}
	for _, r := range res.Items {
		answer.Reserves = append(answer.Reserves, &idnodev1.Reserve{Database: r.Database, Tag: r.Tag, Numbers: r.Numbers, Lasts: durationpb.New(r.Lasts)})
	}
	return answer, nil
}

func (s *idsServer) Claim(ctx context.Context, req *idnodev1.ClaimRequest) (*idnodev1.ClaimResponse, error) {
	res, err := s.service.Claim(ctx, service.ClaimRequest{
		Database: req.GetDatabase(), ID: req.GetId(), Separator: req.GetSeparator(), RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ClaimResponse{Id: res.ID, LogIndex: res.LogIndex}, nil
}

func (s *idsServer) Release(ctx context.Context, req *idnodev1.ReleaseRequest) (*idnodev1.ReleaseResponse, error) {
	res, err := s.service.Release(ctx, service.ReleaseRequest{
		Database: req.GetDatabase(), ID: req.GetId(), RequestID: requestID(req.GetRequestId()),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ReleaseResponse{LogIndex: res.LogIndex}, nil
}

func (s *idsServer) ListClaims(ctx context.Context, req *idnodev1.ListClaimsRequest) (*idnodev1.ListClaimsResponse, error) {
	res, err := s.service.ListClaims(ctx, listRequest(req))
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ListClaimsResponse{Ids: res.Items, NextPageToken: res.NextPageToken, LogIndex: res.LogIndex}, nil
}

// listing is what the three list requests have in common.
type listing interface {
	GetDatabase() string
	GetPrefix() string
	GetPageSize() int32
	GetPageToken() string
	GetConsistency() idnodev1.Consistency
}

func listRequest(req listing) service.ListRequest {
	return service.ListRequest{
		Database: req.GetDatabase(), Prefix: req.GetPrefix(), PageSize: int(req.GetPageSize()),
		PageToken: req.GetPageToken(), Consistency: consistencyOf(req.GetConsistency()),
	}
}

// consistencyOf translates a consistency; one that is not known becomes one the
// service does not know either, and refuses.
func consistencyOf(c idnodev1.Consistency) service.Consistency {
	switch c {
	case idnodev1.Consistency_CONSISTENCY_UNSPECIFIED, idnodev1.Consistency_CONSISTENCY_LINEARIZABLE:
		return service.Linearizable
	case idnodev1.Consistency_CONSISTENCY_STALE:
		return service.Stale
	default:
		return service.Consistency(255)
	}
}
