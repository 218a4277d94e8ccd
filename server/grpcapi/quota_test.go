package grpcapi

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestQuotas: each limit that the cluster keeps refuses what goes beyond it with
// QUOTA, lets on what is there already, and lets in again once it is raised.
func TestQuotas(t *testing.T) {
	type call func(ctx context.Context, ids idnodev1.IdsServiceClient) error
	identity := func(database, name string) call {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: database, Name: name})
			return err
		}
	}
	seed := func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
		_, err := ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "second", Value: proto.Int64(5)})
		return err
	}
	generate := func(r *idnodev1.GenerateRequest) call {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.Generate(ctx, r)
			return err
		}
	}
	hilo := func(tag string) call {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: tag})
			return err
		}
	}
	claim := func(id string) call {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.Claim(ctx, &idnodev1.ClaimRequest{Id: id})
			return err
		}
	}
	for _, test := range []struct {
		name, key    string
		limit        int64
		first, again call
		beyond       call
	}{
		{"identity", "max-identities", 1, identity("", "first"), identity("", "FIRST|"), identity("", "second")},
		{"seed", "max-identities", 1, identity("", "first"), identity("", "first"), seed},
		{"template", "max-identities", 1, identity("", "first"), identity("", "first"), generate(&idnodev1.GenerateRequest{Template: "second|"})},
		{"range", "max-hilos", 1, hilo("first"), hilo("First"), hilo("second")},
		{"claim", "max-claims", 1, claim("first"), identity("", "any"), claim("second")},
		{
			"claimed id", "max-claims", 1, claim("first"), identity("", "any"),
			generate(&idnodev1.GenerateRequest{Template: "second", Claim: true}),
		},
		{"database", "max-databases", 1, identity("one", "first"), identity("One", "second"), identity("two", "first")},
		{"bytes of identities", "max-name-bytes-total", 8, identity("", "first"), identity("", "first"), identity("", "four")},
		{"bytes of ranges", "max-name-bytes-total", 8, identity("", "first"), hilo("tag"), hilo("four")},
		{"bytes of claims", "max-name-bytes-total", 8, hilo("first"), claim("ids"), claim("four")},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := serve(t, Config{}, nil)
			ctx := bounded(t)
			set := func(value int64) {
				t.Helper()
				if _, err := r.cluster.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: test.key, Value: proto.Int64(value)}); err != nil {
					t.Fatal(err)
				}
			}
			set(test.limit)
			if err := test.first(ctx, r.ids); err != nil {
				t.Fatalf("within the limit: %v", err)
			}
			before := countsOf(t, r)
			wantStatus(t, test.beyond(ctx, r.ids), codes.ResourceExhausted, "QUOTA", "")
			sameMessage(t, countsOf(t, r), before)
			if err := test.again(ctx, r.ids); err != nil {
				t.Errorf("what is there already, or another kind: %v", err)
			}
			set(1000)
			if err := test.beyond(ctx, r.ids); err != nil {
				t.Errorf("with the limit raised: %v", err)
			}
		})
	}
}

func countsOf(t *testing.T, r *rig) *idnodev1.StateCounts {
	t.Helper()
	st, err := r.cluster.GetStatus(bounded(t), &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return st.GetCounts()
}

// TestRequestWindowIsBounded: the number of request ids that are remembered is a
// setting as well. It refuses nobody: the oldest go, and a retry that may be one of
// them is told so. Their size has a bound of its own.
func TestRequestWindowIsBounded(t *testing.T) {
	r := serve(t, Config{}, nil)
	ctx := bounded(t)
	if _, err := r.cluster.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "request-window", Value: proto.Int64(2)}); err != nil {
		t.Fatal(err)
	}
	next := func(id string, since *uint64) (*idnodev1.NextIdentityResponse, error) {
		return r.ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{
			Name: "users", RequestId: &idnodev1.RequestId{Id: id, RetrySince: since},
		})
	}
	for _, id := range []string{"one", "two", "three"} {
		if _, err := next(id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := countsOf(t, r).GetRequestIds(); n != 2 {
		t.Errorf("%d request ids are remembered, want 2", n)
	}
	if again, err := next("three", new(uint64)); err != nil || again.GetBlocks()[0].GetFirst() != 3 {
		t.Errorf("a retry of what is remembered: %v %v", again, err)
	}
	_, err := next("one", new(uint64))
	wantStatus(t, err, codes.FailedPrecondition, "REQUEST_ID_EXPIRED", "request_id")
	_, err = next(string(make([]byte, 65)), nil)
	wantStatus(t, err, codes.InvalidArgument, "INVALID_REQUEST_ID", "request_id")
}
