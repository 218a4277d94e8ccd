package service

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestIdentity(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	next := func(name string, count int64) []*idnodev1.ValueBlock {
		t.Helper()
		res, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name, Count: count})
		if err != nil || res.LogIndex == 0 {
			t.Fatalf("%+v %v", res, err)
		}
		return res.Blocks
	}
	get := func(name string) (*idnodev1.Identity, error) {
		res, err := n.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: name})
		return res.GetIdentity(), err
	}

	_, err := get("users")
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonIdentityNotFound, "")
	same(t, next("users", 0), []*idnodev1.ValueBlock{{First: 1, Last: 1}})
	same(t, next("Users|", 10), []*idnodev1.ValueBlock{{First: 2, Last: 11}})

	seeded, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(5)})
	if err != nil || seeded.Value != 11 {
		t.Errorf("a lower seed: %+v %v", seeded, err)
	}
	wrong := int64(12)
	_, err = n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(50), Expected: &wrong})
	wantError(t, err, apierror.CodeAborted, apierror.ReasonConcurrency, "expected")
	seeded, err = n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(-3), Force: true})
	if err != nil || seeded.Value != -3 {
		t.Errorf("a forced seed: %+v %v", seeded, err)
	}
	got, err := get("USERS|")
	if err != nil || got.Name != "users" || got.Value != -3 {
		t.Errorf("get: %+v %v", got, err)
	}

	if _, err = n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(40)}); err != nil {
		t.Fatal(err)
	}
	deleted, err := n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "users|"})
	if err != nil || deleted.Value != 40 {
		t.Errorf("delete: %+v %v", deleted, err)
	}
	_, err = get("users")
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonIdentityNotFound, "")
	_, err = n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "users|"})
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonIdentityNotFound, "name")
	same(t, next("users", 1), []*idnodev1.ValueBlock{{First: 41, Last: 41}})
	if _, err = n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "users", Forget: true}); err != nil {
		t.Fatal(err)
	}
	same(t, next("users", 1), []*idnodev1.ValueBlock{{First: 1, Last: 1}})
}

func TestIdentityExhausted(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	if _, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(math.MaxInt64 - 2)}); err != nil {
		t.Fatal(err)
	}
	_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "u", Count: 3})
	wantError(t, err, apierror.CodeOutOfRange, apierror.ReasonCounterExhausted, "count")
	res, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "u|", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, res.Ids, []string{"u/9223372036854775806", "u/9223372036854775807"})
	_, err = n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "u"})
	wantError(t, err, apierror.CodeOutOfRange, apierror.ReasonCounterExhausted, "count")
}

func TestIdentityLimits(t *testing.T) {
	long, get := strings.Repeat("x", 2001), calling((*Service).GetIdentity)
	checkLimits(t, []limitTest{
		{"next: name", callNext(&idnodev1.NextIdentityRequest{Name: long}), apierror.ReasonInvalidName, "name"},
		{"next: longest name", callNext(&idnodev1.NextIdentityRequest{Name: long[:2000] + "|"}), "", ""},
		{"next: folds too long", callNext(&idnodev1.NextIdentityRequest{Name: strings.Repeat("Ⱥ", 1000)}), apierror.ReasonInvalidName, "name"},
		{"next: no name", callNext(&idnodev1.NextIdentityRequest{}), apierror.ReasonInvalidName, "name"},
		{"next: database", callNext(&idnodev1.NextIdentityRequest{Name: "u", Database: "ü"}), apierror.ReasonInvalidDatabase, "database"},
		{"next: separator", callNext(&idnodev1.NextIdentityRequest{Name: "u", Separator: "-"}), apierror.ReasonInvalidSeparator, "separator"},
		{"next: count", callNext(&idnodev1.NextIdentityRequest{Name: "u", Count: 1_000_000}), "", ""},
		{"next: count too large", callNext(&idnodev1.NextIdentityRequest{Name: "u", Count: 1_000_001}), apierror.ReasonInvalidCount, "count"},
		{"next: count negative", callNext(&idnodev1.NextIdentityRequest{Name: "u", Count: math.MinInt64}), apierror.ReasonInvalidCount, "count"},
		{
			"next: request id", callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{}}),
			apierror.ReasonInvalidRequestID, "request_id",
		},
		{"seed: name", callSeed(&idnodev1.SeedIdentityRequest{Name: `a\b`, Value: proto.Int64(0)}), apierror.ReasonInvalidName, "name"},
		{"seed: no value", callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Force: true}), apierror.ReasonInvalidRequest, "value"},
		{"seed: database", callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Database: "a b"}), apierror.ReasonInvalidDatabase, "database"},
		{
			"seed: request id", callSeed(&idnodev1.SeedIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: long}, Value: proto.Int64(0)}),
			apierror.ReasonInvalidRequestID, "request_id",
		},
		{"seed: greatest", callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(math.MaxInt64)}), "", ""},
		{"seed: least", callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(math.MinInt64), Force: true}), "", ""},
		{"delete: name", callDelete(&idnodev1.DeleteIdentityRequest{Name: "||"}), apierror.ReasonInvalidName, "name"},
		{
			"delete: request id", callDelete(&idnodev1.DeleteIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{}}),
			apierror.ReasonInvalidRequestID, "request_id",
		},
		{"get: name", get(&idnodev1.GetIdentityRequest{Name: " "}), apierror.ReasonInvalidName, "name"},
		{
			"get: consistency", get(&idnodev1.GetIdentityRequest{Name: "u", Consistency: 9}),
			apierror.ReasonInvalidConsistency, "consistency",
		},
	})
}

// TestNextIdentities: calls made together fail and count one by one.
func TestNextIdentities(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.MaxInFlight = 6 })
	once := &idnodev1.RequestId{Id: "once"}
	responses, errs := n.NextIdentities(context.Background(), []*idnodev1.NextIdentityRequest{
		{Name: "a"},
		{Name: "b", Count: 10},
		{Name: "a\\"},
		{Name: "a", RequestId: once},
		{Name: "a", RequestId: once},
		{Name: "a", Count: 2, RequestId: once},
		{Name: "one too many"},
	})
	want := [][]*idnodev1.ValueBlock{
		0: {{First: 1, Last: 1}}, 1: {{First: 1, Last: 10}}, 3: {{First: 2, Last: 2}},
		4: {{First: 2, Last: 2}}, 6: nil,
	}
	for i, res := range responses {
		if diff := cmp.Diff(want[i], res.GetBlocks(), protocmp.Transform()); diff != "" {
			t.Errorf("call %d: %s (%v)", i, diff, errs[i])
		}
	}
	wantError(t, errs[2], apierror.CodeInvalidArgument, apierror.ReasonInvalidName, "name")
	wantError(t, errs[5], apierror.CodeAlreadyExists, apierror.ReasonRequestIDReused, "request_id")
	wantError(t, errs[6], apierror.CodeResourceExhausted, apierror.ReasonOverloaded, "")
	if got := n.InFlight(); got != 0 {
		t.Errorf("%d calls are in flight afterwards", got)
	}

	w.Set(func(f *fsmtest.Faults) { f.Fail, f.Lost = outcome.NewUnknown(outcome.Deadline, nil), true })
	_, errs = n.NextIdentities(context.Background(),
		[]*idnodev1.NextIdentityRequest{{Name: "a"}, {Name: "a", RequestId: &idnodev1.RequestId{Id: "2"}}})
	wantError(t, errs[0], apierror.CodeAborted, apierror.ReasonOutcomeUnknown, "")
	wantError(t, errs[1], apierror.CodeUnavailable, apierror.ReasonOutcomeUnknown, "")
}
