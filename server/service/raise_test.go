package service

import (
	"context"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/apierror"
)

// TestRaisesBeyondADistanceAreForAdministrators as long as there are no roles: numbers that
// are skipped are gone, and nothing lowers a HiLo counter.
func TestRaisesBeyondADistanceAreForAdministrators(t *testing.T) {
	seed := func(req *idnodev1.SeedIdentityRequest) func(context.Context, node) error {
		return func(ctx context.Context, n node) error {
			req.Name = "orders"
			_, err := n.SeedIdentity(ctx, req)
			return err
		}
	}
	set := func(from, to int64) func(context.Context, node) error {
		return func(ctx context.Context, n node) error {
			_, err := n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "orders", Expected: from, Max: to})
			return err
		}
	}
	stands, lower, tooFar := int64(100), int64(-9), int64(101+hilo.MaxAhead)
	for name, tt := range map[string]struct {
		raise func(context.Context, node) error
		far   bool
	}{
		"a seed":                            {seed(&idnodev1.SeedIdentityRequest{Value: proto.Int64(100 + hilo.MaxAhead)}), false},
		"a seed too far":                    {seed(&idnodev1.SeedIdentityRequest{Value: &tooFar}), true},
		"a seed to the end":                 {seed(&idnodev1.SeedIdentityRequest{Value: proto.Int64(math.MaxInt64)}), true},
		"a seed from an expected value":     {seed(&idnodev1.SeedIdentityRequest{Value: &tooFar, Expected: &stands}), true},
		"a seed from one that is not there": {seed(&idnodev1.SeedIdentityRequest{Value: proto.Int64(math.MaxInt64), Expected: &lower}), true},
		"a seed that lowers nothing":        {seed(&idnodev1.SeedIdentityRequest{Value: proto.Int64(math.MinInt64)}), false},
		"a set":                             {set(100, 100+hilo.MaxAhead), false},
		"a set too far":                     {set(100, 101+hilo.MaxAhead), true},
		"a set to the end":                  {set(100, math.MaxInt64), true},
	} {
		n := newNode(t, newWorld(t), func(c *Config) { c.Guarded, c.Admins = true, []string{"ops"} })
		if err := seed(&idnodev1.SeedIdentityRequest{Value: &stands})(as("shop"), n); err != nil {
			t.Fatal(err)
		}
		if err := set(0, stands)(as("shop"), n); err != nil {
			t.Fatal(err)
		}
		before := n.world.Proposals()
		if err := tt.raise(as("shop"), n); denied(err) != tt.far || tt.far && n.world.Proposals() != before {
			t.Errorf("%s: %v", name, err)
		}
		n = newNode(t, n.world, func(c *Config) { c.Guarded, c.Admins = true, []string{"ops"} })
		if err := tt.raise(as("ops"), n); denied(err) {
			t.Errorf("%s by an administrator: %v", name, err)
		}
		n = newNode(t, newWorld(t), nil)
		n.setRoles(t, everything(),
			rights.Role{Name: "shop", Principals: []string{"shop"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Seed}}})
		if err := tt.raise(as("shop"), n); denied(err) {
			t.Errorf("%s by a role: %v", name, err)
		}
	}
}

// TestSeriesAreForAdministrators as long as there are no roles, but for taking and
// confirming numbers.
func TestSeriesAreForAdministrators(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) { c.Guarded, c.Admins = true, []string{"ops"} })
	if _, err := n.DefineSeries(as("ops"),
		&idnodev1.DefineSeriesRequest{Name: "bills", Definition: definitionMessage(series.Definition{Format: "R-{number}"})}); err != nil {
		t.Fatal(err)
	}
	keys := []*idnodev1.NumberOf{{Key: "a", Number: 1}}
	for _, tt := range []struct {
		name    string
		call    func(context.Context) error
		guarded bool
	}{
		{"take", func(ctx context.Context) error {
			_, err := n.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "bills", Keys: []string{"a", "b"}})
			return err
		}, false},
		{"void", func(ctx context.Context) error {
			_, err := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "bills", Keys: keys})
			return err
		}, true},
		{"release", func(ctx context.Context) error {
			_, err := n.ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Series: "bills", Keys: keys})
			return err
		}, true},
		{"confirm", func(ctx context.Context) error {
			_, err := n.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: "bills", Keys: keys})
			return err
		}, false},
		{"close", func(ctx context.Context) error {
			_, err := n.CloseScope(ctx, &idnodev1.CloseScopeRequest{Series: "bills"})
			return err
		}, true},
		{"define", func(ctx context.Context) error {
			_, err := n.DefineSeries(ctx,
				&idnodev1.DefineSeriesRequest{Name: "other", Definition: definitionMessage(series.Definition{Format: "R-{number}"})})
			return err
		}, true},
	} {
		if err := tt.call(as("shop")); denied(err) != tt.guarded || !tt.guarded && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := func() error {
		_, err := n.CloseScope(as("ops"), &idnodev1.CloseScopeRequest{Series: "bills"})
		return err
	}(); err != nil {
		t.Errorf("close by an administrator: %v", err)
	}
}

// TestSkippedNumbersCount in the limit of the caller that skips them, at once and however
// many they are.
func TestSkippedNumbersCount(t *testing.T) {
	n := newLimitedNode(t, rights.Limit{Principals: []string{rights.Any}, IDsPerSecond: 1_000})
	next := func(who string, lastMax int64) error {
		_, err := n.NextRange(as(who), &idnodev1.NextRangeRequest{Tag: "orders", Size: 10, LastMax: lastMax})
		return err
	}
	for _, tt := range []struct {
		who     string
		lastMax int64
		after   time.Duration
	}{
		{"shop", 50_000, 49 * time.Second},
		{"till", 50_010, 0}, // It skips nothing,
		{"late", 7, 0},      // and neither does this one.
		{"thief", 1 << 32, (1<<32 - 51_000) * time.Millisecond}, // 49 days
	} {
		if err := next(tt.who, tt.lastMax); err != nil {
			t.Fatalf("%s: %v", tt.who, err)
		}
		err := next(tt.who, 0)
		if tt.after == 0 {
			if err != nil {
				t.Errorf("%s skips nothing: %v", tt.who, err)
			}
			continue
		}
		wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
		if after := err.(*apierror.Error).RetryAfter; after < tt.after-5*time.Second || after > tt.after+5*time.Second {
			t.Errorf("%s: to be tried again after %s, want %s", tt.who, after, tt.after)
		}
	}
}
