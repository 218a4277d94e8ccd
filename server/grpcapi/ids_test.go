package grpcapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
)

func sameMessage(t *testing.T, got, want proto.Message) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Errorf("difference (-want +got):\n%s", d)
	}
}

// TestIds calls every method once, and compares whole answers.
func TestIds(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx := bounded(t)
	check := func(got, want proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		sameMessage(t, got, want)
	}

	generated, err := r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "Users|", Count: 2})
	check(generated, &idnodev1.GenerateResponse{
		Ids:      []string{"Users/1", "Users/2"},
		Blocks:   []*idnodev1.IdBlock{{Prefix: "Users/", First: 1, Last: 2}},
		Strategy: idnodev1.Strategy_STRATEGY_IDENTITY, NodeTag: "A", LogIndex: 2,
	}, err)
	generated, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", BlocksOnly: true})
	check(generated, &idnodev1.GenerateResponse{
		Blocks:   []*idnodev1.IdBlock{{Prefix: "users/", First: 1, Last: 1, Width: 19, Suffix: "-A"}},
		Strategy: idnodev1.Strategy_STRATEGY_SERVER_SIDE, NodeTag: "A",
	}, err)
	generated, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{})
	if err != nil || len(generated.GetIds()) != 1 || generated.GetStrategy() != idnodev1.Strategy_STRATEGY_GUID {
		t.Errorf("%v %v", generated, err)
	}
	generated, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/9", Claim: true})
	check(generated, &idnodev1.GenerateResponse{
		Ids: []string{"users/9"}, Strategy: idnodev1.Strategy_STRATEGY_SEMANTIC, NodeTag: "A", LogIndex: 3,
	}, err)

	next, err := r.ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "users|", Count: 7})
	check(next, &idnodev1.NextIdentityResponse{Blocks: []*idnodev1.ValueBlock{{First: 3, Last: 8}, {First: 10, Last: 10}}, LogIndex: 4}, err)
	seeded, err := r.ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(20), Expected: proto.Int64(10)})
	check(seeded, &idnodev1.SeedIdentityResponse{Value: 20, LogIndex: 5}, err)
	got, err := r.ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "USERS"})
	check(got, &idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: "users", Value: 20}, LogIndex: 5}, err)
	list, err := r.ids.ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{Consistency: idnodev1.Consistency_CONSISTENCY_STALE})
	check(list, &idnodev1.ListIdentitiesResponse{Identities: []*idnodev1.Identity{{Name: "users", Value: 20}}, LogIndex: 5}, err)
	deleted, err := r.ids.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "users"})
	check(deleted, &idnodev1.DeleteIdentityResponse{Value: 20, LogIndex: 6}, err)

	ranged, err := r.ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "Orders", Size: 5})
	check(ranged, &idnodev1.NextRangeResponse{
		Prefix: "Orders/", Low: 1, High: 5, Size: 5, NodeTag: "A", LogIndex: 7, Token: ranged.GetToken(),
		RangeAt: &timestamppb.Timestamp{Seconds: 1_700_000_000, Nanos: 123},
	}, err)
	if len(ranged.GetToken()) != 16 || strings.Trim(ranged.GetToken(), "0") == "" {
		t.Errorf("token %s", ranged.GetToken())
	}
	again, err := r.ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", LastSize: 32, LastRangeAt: ranged.GetRangeAt()})
	if err != nil || again.GetSize() != 64 || again.GetLow() != 6 {
		t.Errorf("%v %v", again, err)
	}
	returned, err := r.ids.ReturnRange(ctx,
		&idnodev1.ReturnRangeRequest{Tag: "orders", Low: 6, High: again.GetHigh(), Last: proto.Int64(10), Token: again.GetToken()})
	check(returned, &idnodev1.ReturnRangeResponse{Returned: true, Max: 10, LogIndex: 9}, err)
	set, err := r.ids.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "orders", Max: 100, Expected: 10})
	check(set, &idnodev1.SetHiLoResponse{Max: 100, LogIndex: 10}, err)
	hilo, err := r.ids.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "orders"})
	check(hilo, &idnodev1.GetHiLoResponse{Hilo: &idnodev1.HiLo{Tag: "orders", Max: 100}, LogIndex: 10}, err)
	hilos, err := r.ids.ListHiLo(ctx, &idnodev1.ListHiLoRequest{Prefix: "ORD"})
	check(hilos, &idnodev1.ListHiLoResponse{Hilos: []*idnodev1.HiLo{{Tag: "orders", Max: 100}}, LogIndex: 10}, err)
	reserves, err := r.ids.ListReserves(ctx, &idnodev1.ListReservesRequest{})
	check(reserves, &idnodev1.ListReservesResponse{
		NodeTag: "A", Reserves: []*idnodev1.Reserve{{Database: "default", Tag: "orders", Numbers: 96, Lasts: durationpb.New(90 * time.Second)}},
	}, err)

	claimed, err := r.ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "Names/Ayende"})
	check(claimed, &idnodev1.ClaimResponse{Id: "Names/Ayende", LogIndex: 11}, err)
	claims, err := r.ids.ListClaims(ctx, &idnodev1.ListClaimsRequest{PageSize: 1})
	check(claims, &idnodev1.ListClaimsResponse{Ids: []string{"names/ayende"}, NextPageToken: claims.GetNextPageToken(), LogIndex: 11}, err)
	claims, err = r.ids.ListClaims(ctx, &idnodev1.ListClaimsRequest{PageSize: 1, PageToken: claims.GetNextPageToken()})
	check(claims, &idnodev1.ListClaimsResponse{Ids: []string{"users/9"}, LogIndex: 11}, err)
	released, err := r.ids.Release(ctx, &idnodev1.ReleaseRequest{Id: "names/AYENDE"})
	check(released, &idnodev1.ReleaseResponse{LogIndex: 12}, err)
}

func TestCluster(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx := bounded(t)
	self := &idnodev1.Member{
		Tag: "A", Id: "6e6f64652d612d2d2d2d2d2d2d2d2d2d", GrpcAddress: "a:7400", RaftAddress: "a:7401",
		Role: idnodev1.Role_ROLE_LEADER, LogFormat: 1,
	}
	st, err := r.cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sameMessage(t, st, &idnodev1.GetStatusResponse{
		ClusterId: "c", Self: self, LeaderTag: "A", Term: 3, HasQuorum: true, LastContact: st.GetLastContact(),
		AppliedIndex: 1, CommitIndex: 9, StateHash: st.GetStateHash(), LogFormat: 1,
		Counts: &idnodev1.StateCounts{}, Version: "test", Members: []*idnodev1.Member{self},
	})
	members, err := r.cluster.ListMembers(ctx, &idnodev1.ListMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sameMessage(t, members, &idnodev1.ListMembersResponse{Members: []*idnodev1.Member{self}, LogIndex: 1})
	removed, err := r.cluster.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "B"})
	if err != nil || removed.GetLogIndex() != 5 {
		t.Errorf("%v %v", removed, err)
	}
	leader, err := r.cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{})
	if err != nil || leader.GetLeaderTag() != "B" {
		t.Errorf("%v %v", leader, err)
	}
	updated, err := r.cluster.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "max-claims", Value: proto.Int64(7)})
	if err != nil || updated.GetSetting().GetValue() != 7 {
		t.Errorf("%v %v", updated, err)
	}
	settings, err := r.cluster.ListSettings(ctx, &idnodev1.ListSettingsRequest{})
	if err != nil || len(settings.GetSettings()) < 2 || settings.GetSettings()[0].GetDescription() == "" {
		t.Errorf("%v %v", settings, err)
	}
	_, err = r.cluster.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "b"})
	wantStatus(t, err, codes.InvalidArgument, "INVALID_NODE_TAG", "tag")
}

// TestErrors: one ErrorInfo each, the field if there is one, and when to try
// again if that is of use.
func TestErrors(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx := bounded(t)
	_, err := r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: `a\b`})
	wantStatus(t, err, codes.InvalidArgument, "INVALID_ID", "template")
	_, err = r.ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{}})
	wantStatus(t, err, codes.InvalidArgument, "INVALID_REQUEST_ID", "request_id")
	_, err = r.ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "u", LastRangeAt: &timestamppb.Timestamp{Nanos: -1}})
	wantStatus(t, err, codes.InvalidArgument, "INVALID_LAST_RANGE_AT", "last_range_at")
	_, err = r.ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "u", Consistency: 99})
	wantStatus(t, err, codes.InvalidArgument, "INVALID_CONSISTENCY", "consistency")
	_, err = r.ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "u"})
	if retry := wantStatus(t, err, codes.NotFound, "IDENTITY_NOT_FOUND", ""); retry != 0 {
		t.Errorf("retry after %s", retry)
	}

	r.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, errors.New("secret")) })
	_, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "u|"})
	if retry := wantStatus(t, err, codes.Unavailable, "NO_QUORUM", ""); retry <= 0 {
		t.Error("no RetryInfo")
	}
	r.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewUnknown(outcome.LeadershipLost, errors.New("secret")) })
	_, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "u|"})
	if retry := wantStatus(t, err, codes.Aborted, "OUTCOME_UNKNOWN", ""); retry != 0 {
		t.Errorf("retry after %s", retry)
	}
	_, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "u|", RequestId: &idnodev1.RequestId{Id: "x"}})
	wantStatus(t, err, codes.Unavailable, "OUTCOME_UNKNOWN", "")
	if bytes.Contains([]byte(err.Error()), []byte("secret")) {
		t.Error("the cause reached the caller")
	}
}

// TestAnErrorOfNoCode is an internal one, and its text stays unseen.
func TestAnErrorOfNoCode(t *testing.T) {
	wantStatus(t, statusError(errors.New("odd")), codes.Internal, "INTERNAL", "")
	if statusError(nil) != nil {
		t.Error("no error became one")
	}
}

// FuzzGenerateRequest: whatever bytes arrive as a request, the answer is ids or
// an error with a reason.
func FuzzGenerateRequest(f *testing.F) {
	for _, req := range []*idnodev1.GenerateRequest{
		{},
		{Template: "users/"},
		{Template: "users|", Count: 3, RequestId: &idnodev1.RequestId{Id: "x", RetrySince: proto.Uint64(0)}},
		{Template: "users/x", Claim: true},
		{Template: "u|", Separator: "Ⓐ", BlocksOnly: true, Count: 9},
		{Database: "ü"},
	} {
		b, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	b := newBackend(f)
	svc := service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events: metrics.New("").Service(), ReserveTotal: func() *reserve.Total { return nil },
		Caller:   func(context.Context) admission.Caller { return admission.Caller{} },
		Proposer: b, Linearizer: b, State: b.State, Etags: b, Cluster: b, Tag: func() (string, bool) { return "A", true },
	})
	server := services{Service: svc}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &idnodev1.GenerateRequest{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		res, err := server.Generate(ctx, req)
		if err == nil {
			if len(res.GetIds()) == 0 && len(res.GetBlocks()) == 0 {
				t.Fatalf("neither ids nor an error for %v", req)
			}
			return
		}
		code, infos, fields, _ := errorDetails(t, statusError(err))
		if len(infos) != 1 || infos[0].GetReason() == "" || code == codes.Internal || code == codes.InvalidArgument && len(fields) != 1 {
			t.Fatalf("%v with %v and fields %v for %v", err, infos, fields, req)
		}
	})
}

func TestWhoHolds(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx := bounded(t)
	for _, label := range []string{"till 1", "till 2"} {
		if _, err := r.ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", Size: 5, Label: label}); err != nil {
			t.Fatal(err)
		}
	}
	r.Must(op.Envelope{Database: "default"}, &raftlogv1.HiLoNext{Tag: "orders", Size: 5, ServerTag: "B", Reserve: true})
	at := &timestamppb.Timestamp{Seconds: 1_700_000_000}
	for number, want := range map[int64]*idnodev1.WhoHoldsResponse{
		5: {
			State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 1, High: 5,
			Holder: &idnodev1.RangeHolder{Label: "till 1", NodeTag: "A", IssuedAt: at},
		},
		6: {
			State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 6, High: 10,
			Holder: &idnodev1.RangeHolder{Label: "till 2", NodeTag: "A", IssuedAt: at},
		},
		11: {State: idnodev1.RangeState_RANGE_STATE_RESERVED, Low: 11, High: 15, Holder: &idnodev1.RangeHolder{NodeTag: "B", IssuedAt: at}},
		16: {State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED},
	} {
		got, err := r.ids.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "Orders", Number: number})
		if err != nil {
			t.Fatal(err)
		}
		want.LogIndex = got.GetLogIndex()
		sameMessage(t, got, want)
	}
	r.Must(op.Envelope{Database: "default"}, &raftlogv1.HiLoSet{Tag: "orders", Max: 20, Expected: 15})
	got, err := r.ids.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Tag: "orders", Number: 15})
	if err != nil || got.GetState() != idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED {
		t.Errorf("%v %v", got, err)
	}
}
