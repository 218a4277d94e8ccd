package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// refusal is a call that must be refused.
type refusal struct {
	name   string
	call   func(context.Context, idnodev1.IdsServiceClient) error
	code   codes.Code
	reason string
	field  string
}

// TestRefusals: what lies beyond a limit is refused with the right code, the
// reason and the field, and changes nothing.
func TestRefusals(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	n := c.Others(c.Leader(t))[0]
	c.Agree(t)
	before := view(t, n)
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			err := r.call(ctx, n.Ids)
			if status.Code(err) != r.code || harness.Reason(err) != r.reason {
				t.Fatalf("%v (reason %q), want %s %s", err, harness.Reason(err), r.code, r.reason)
			}
			if fields := harness.Fields(err); r.field != "" && !slices.Contains(fields, r.field) {
				t.Errorf("fields %v, want %s", fields, r.field)
			}
		})
	}
	if after := view(t, n); after.Counts.String() != before.Counts.String() {
		t.Errorf("refused calls changed the state from %v to %v", before.Counts, after.Counts)
	}
}

func refusals() []refusal {
	generate := func(r *idnodev1.GenerateRequest) func(context.Context, idnodev1.IdsServiceClient) error {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.Generate(ctx, r)
			return err
		}
	}
	nextRange := func(r *idnodev1.NextRangeRequest) func(context.Context, idnodev1.IdsServiceClient) error {
		return func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.NextRange(ctx, r)
			return err
		}
	}
	const invalid = codes.InvalidArgument
	return []refusal{
		{"backslash", generate(&idnodev1.GenerateRequest{Template: `users\1`}), invalid, "INVALID_ID", "template"},
		{"too long", generate(&idnodev1.GenerateRequest{Template: strings.Repeat("x", 2026)}), invalid, "INVALID_ID", "template"},
		{
			"too long after generation", generate(&idnodev1.GenerateRequest{Template: strings.Repeat("x", 2004) + "/"}), invalid,
			"INVALID_ID", "template",
		},
		{"two pipes", generate(&idnodev1.GenerateRequest{Template: "users||"}), invalid, "INVALID_ID", "template"},
		{"pipe as separator", generate(&idnodev1.GenerateRequest{Template: "users|", Separator: "|"}), invalid, "INVALID_SEPARATOR", "separator"},
		{"long separator", generate(&idnodev1.GenerateRequest{Template: "users|", Separator: "//"}), invalid, "INVALID_SEPARATOR", "separator"},
		{"negative count", generate(&idnodev1.GenerateRequest{Template: "users|", Count: -1}), invalid, "INVALID_COUNT", "count"},
		{
			"count too large", generate(&idnodev1.GenerateRequest{Template: "users|", Count: 1_000_001, BlocksOnly: true}), invalid,
			"INVALID_COUNT", "count",
		},
		{"count of a semantic id", generate(&idnodev1.GenerateRequest{Template: "users/x", Count: 2}), invalid, "INVALID_COUNT", "count"},
		{"claim of a template", generate(&idnodev1.GenerateRequest{Template: "users|", Claim: true}), invalid, "INVALID_CLAIM", "claim"},
		{
			"request id on a GUID", generate(&idnodev1.GenerateRequest{RequestId: &idnodev1.RequestId{Id: "x"}}), invalid,
			"INVALID_REQUEST_ID", "request_id",
		},
		{
			"request id on a server-side id", generate(&idnodev1.GenerateRequest{Template: "users/", RequestId: &idnodev1.RequestId{Id: "x"}}),
			invalid, "INVALID_REQUEST_ID", "request_id",
		},
		{
			"request id too long",
			generate(&idnodev1.GenerateRequest{Template: "users|", RequestId: &idnodev1.RequestId{Id: strings.Repeat("x", 65)}}), invalid,
			"INVALID_REQUEST_ID", "request_id",
		},
		{"database", generate(&idnodev1.GenerateRequest{Template: "users|", Database: "a b"}), invalid, "INVALID_DATABASE", "database"},
		{"tag ends with the separator", nextRange(&idnodev1.NextRangeRequest{Tag: "users/"}), invalid, "INVALID_TAG", "tag"},
		{"tag ends with a pipe", nextRange(&idnodev1.NextRangeRequest{Tag: "users|"}), invalid, "INVALID_TAG", "tag"},
		{"tag empty", nextRange(&idnodev1.NextRangeRequest{}), invalid, "INVALID_TAG", "tag"},
		{"tag too long", nextRange(&idnodev1.NextRangeRequest{Tag: strings.Repeat("x", 2001)}), invalid, "INVALID_TAG", "tag"},
		{"size too large", nextRange(&idnodev1.NextRangeRequest{Tag: "users", Size: 1<<20 + 1}), invalid, "INVALID_SIZE", "size"},
		{"size negative", nextRange(&idnodev1.NextRangeRequest{Tag: "users", Size: -1}), invalid, "INVALID_SIZE", "size"},
		{"last size negative", nextRange(&idnodev1.NextRangeRequest{Tag: "users", LastSize: -1}), invalid, "INVALID_SIZE", "last_size"},
		{
			"last max too far ahead", nextRange(&idnodev1.NextRangeRequest{Tag: "users", LastMax: 1<<32 + 1}), invalid,
			"INVALID_LAST_MAX", "last_max",
		},
		{"unknown identity", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "nobody"})
			return err
		}, codes.NotFound, "IDENTITY_NOT_FOUND", ""},
		{"unknown claim", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.Release(ctx, &idnodev1.ReleaseRequest{Id: "nobody/1"})
			return err
		}, codes.NotFound, "CLAIM_NOT_FOUND", ""},
		{"page token", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			_, err := ids.ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{PageToken: "!"})
			return err
		}, invalid, "INVALID_PAGE_TOKEN", "page_token"},
		{"expected value", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
			expected := int64(5)
			_, err := ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "nobody", Value: 9, Expected: &expected})
			return err
		}, codes.Aborted, "CONCURRENCY", ""},
	}
}

// TestCounterExhausted: nothing wraps at the end of int64.
func TestCounterExhausted(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{Size: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ids := c.Nodes[0].Ids
	if _, err := ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "last", Value: 1<<63 - 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "last", Count: 3}); status.Code(err) != codes.OutOfRange ||
		harness.Reason(err) != "COUNTER_EXHAUSTED" {
		t.Errorf("a block beyond the end: %v", err)
	}
	r, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "last", Count: 2})
	if err != nil || r.Blocks[0].Last != 1<<63-1 {
		t.Errorf("the last two values: %v %v", r, err)
	}
	if _, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "last"}); harness.Reason(err) != "COUNTER_EXHAUSTED" {
		t.Errorf("beyond the last value: %v", err)
	}
}
