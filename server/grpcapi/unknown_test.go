package grpcapi

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

// newer gives a message a field that only a newer client knows.
func newer[M proto.Message](m M) M {
	m.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 0}) // Field 111.
	return m
}

func wantUnknown(t *testing.T, err error, in string) {
	t.Helper()
	wantStatus(t, err, codes.InvalidArgument, "INVALID_REQUEST", "")
	if want := "the request has a field that this program does not know: number 111 of " + in; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestUnknownFieldsAreRefused: a newer client may narrow a call by a new field, so the call is not made without it.
func TestUnknownFieldsAreRefused(t *testing.T) {
	r := serve(t, Config{}, nil)
	before := r.Index()
	alone := map[string]func() error{
		"GenerateRequest": func() error {
			_, err := r.ids.Generate(bounded(t), newer(&idnodev1.GenerateRequest{Template: "users|"}))
			return err
		},
		"RequestId": func() error {
			_, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{Name: "users", RequestId: newer(&idnodev1.RequestId{Id: "a"})})
			return err
		},
		// A request with repeated parts is decoded elsewhere.
		"RoleGrant": func() error {
			_, err := r.cluster.SetRoles(bounded(t), &idnodev1.SetRolesRequest{Table: &idnodev1.RoleTable{Roles: []*idnodev1.AccessRole{
				{Name: "a", Principals: []string{"*"}, Grants: []*idnodev1.RoleGrant{newer(&idnodev1.RoleGrant{Database: "*"})}},
			}}})
			return err
		},
		"StreamServerSideIdsRequest": func() error {
			stream, err := r.ids.StreamServerSideIds(bounded(t), newer(&idnodev1.StreamServerSideIdsRequest{Template: "users/"}))
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		"ExchangeRequest": func() error {
			stream := r.exchange(t)
			request := newer(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{nextIdentity(1, "users")}})
			if err := stream.Send(request); err != nil {
				return err
			}
			_, err := stream.Recv()
			return err
		},
	}
	for in, call := range alone {
		wantUnknown(t, call(), in)
	}
	if _, err := healthv1.NewHealthClient(r.conn).Check(bounded(t), newer(&healthv1.HealthCheckRequest{})); err != nil {
		t.Errorf("a health check of a newer probe: %v", err)
	}

	bad := map[uint64]string{1: "Call", 2: "NextIdentityRequest", 3: "ClaimRequest", 4: "Duration", 5: "RequestId", 6: "Call"}
	calls := []*idnodev1.Call{
		newer(nextIdentity(1, "users")), nextIdentity(2, "users"),
		{Correlation: 3, Call: &idnodev1.Call_Claim{Claim: newer(&idnodev1.ClaimRequest{Id: "a"})}},
		nextIdentity(4, "users"), nextIdentity(5, "users"), newer(&idnodev1.Call{Correlation: 6}),
	}
	newer(calls[1].GetNextIdentity())
	calls[3].Timeout = newer(durationpb.New(1e9))
	calls[4].GetNextIdentity().RequestId = newer(&idnodev1.RequestId{Id: "a"})
	stream := r.exchange(t)
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	for _, reply := range receive(t, stream, len(calls)) {
		wantUnknown(t, replyError(reply), bad[reply.GetCorrelation()])
	}
	if r.Index() != before {
		t.Error("something was proposed")
	}
	if reply := ask(t, stream, nextIdentity(7, "users")); reply.GetNextIdentity() == nil {
		t.Errorf("a call after them on the stream: %v", reply)
	}
}
