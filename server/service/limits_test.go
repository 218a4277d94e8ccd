package service

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

func limits(t *testing.T, n node, list ...rights.Limit) {
	t.Helper()
	if _, err := n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: Roles{Limits: list}.Message()}); err != nil {
		t.Fatal(err)
	}
}

func newLimitedNode(t *testing.T, list ...rights.Limit) node {
	w := newWorld(t)
	n := newNode(t, w, nil)
	limits(t, n, list...)
	return n
}

// TestCallsInFlightOfACaller: one more is refused, and others are not.
func TestCallsInFlightOfACaller(t *testing.T) {
	n := newLimitedNode(t, rights.Limit{Principals: []string{"shop"}, InFlight: 2})
	release := make(chan struct{})
	n.world.Set(func(f *fsmtest.Faults) { f.Gate = release })
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := n.NextIdentity(as("shop"), &idnodev1.NextIdentityRequest{Name: "orders"})
			done <- err
		}()
	}
	for n.InFlight() < 2 {
		runtime.Gosched()
	}
	wantError(t, generate(as("shop"), n, "", false), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	if err := generate(as("other"), n, "", false); err != nil {
		t.Errorf("another caller: %v", err)
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := generate(as("shop"), n, "", false); err != nil {
		t.Errorf("after the others: %v", err)
	}
	if left := n.InFlight(); left != 0 {
		t.Errorf("%d calls are counted that are over", left)
	}
}

// TestIDsOfACaller: beyond the limit they are refused, in each way to get them,
// and no call is split.
func TestIDsOfACaller(t *testing.T) {
	take := map[string]func(ctx context.Context, n node, count int64) error{
		"generate": func(ctx context.Context, n node, count int64) error {
			_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders/", Count: count, BlocksOnly: true})
			return err
		},
		"identity": func(ctx context.Context, n node, count int64) error {
			_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders", Count: count})
			return err
		},
		"identities": func(ctx context.Context, n node, count int64) error {
			_, errs := n.NextIdentities(ctx, []*idnodev1.NextIdentityRequest{{Name: "orders", Count: count}})
			return errs[0]
		},
		"range": func(ctx context.Context, n node, count int64) error {
			_, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", Size: count})
			return err
		},
	}
	for name, take := range take {
		n := newLimitedNode(t, rights.Limit{Principals: []string{rights.Any}, IDsPerSecond: 2_000})
		if err := take(as("shop"), n, 50_000); err != nil {
			t.Errorf("%s: the first call: %v", name, err)
		}
		err := take(as("shop"), n, 1)
		wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
		if after := err.(*apierror.Error).RetryAfter; after < 20*time.Second || after > 30*time.Second {
			t.Errorf("%s: to be tried again after %s", name, after)
		}
		if err := take(as("other"), n, 2_000); err != nil {
			t.Errorf("%s: another caller: %v", name, err)
		}
		limits(t, n)
		if err := take(as("shop"), n, 50_000); err != nil {
			t.Errorf("%s: without limits: %v", name, err)
		}
	}
}

// TestClaimsOfACaller are ids, in both ways to claim one; and so is a seed, which may make
// a name.
func TestClaimsOfACaller(t *testing.T) {
	const perSecond, burst = 10, 1_000
	n := newLimitedNode(t, rights.Limit{Principals: []string{"shop"}, IDsPerSecond: perSecond})
	given, begin := 0, time.Now()
	for i := range 2 * burst {
		id, err := "users/"+strconv.Itoa(i), error(nil)
		switch i % 4 {
		case 0:
			_, err = n.Claim(as("shop"), &idnodev1.ClaimRequest{Id: id})
		case 1:
			_, err = n.Generate(as("shop"), &idnodev1.GenerateRequest{Template: id, Claim: true})
		case 2:
			_, err = n.SeedIdentity(as("shop"), &idnodev1.SeedIdentityRequest{Name: id, Value: proto.Int64(1)})
		default:
			_, err = n.SetHiLo(as("shop"), &idnodev1.SetHiLoRequest{Tag: id, Max: 32})
		}
		switch {
		case err == nil:
			given++
		case i < burst:
			t.Fatalf("claim %d: %v", i, err)
		default:
			wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
		}
	}
	// The refill during the test's own time.
	if most := burst + 1 + int(perSecond*time.Since(begin).Seconds()); given > most {
		t.Errorf("%d claims were let in, more than %d", given, most)
	}
}

// TestNumbersGivenBack are not counted: once, however often the return is repeated,
// and only those that were given back. A range that is asked for again is counted
// once too.
func TestNumbersGivenBack(t *testing.T) {
	n := newLimitedNode(t, rights.Limit{Principals: []string{"shop"}, IDsPerSecond: 2_000})
	ctx := as("shop")
	next := func(id string) (*idnodev1.NextRangeResponse, error) {
		return n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", Size: hilo.MaxSize, RequestId: &idnodev1.RequestId{Id: id}})
	}
	giveBack := func(r *idnodev1.NextRangeResponse, last int64) {
		t.Helper()
		res, err := n.ReturnRange(ctx, &idnodev1.ReturnRangeRequest{
			Tag: "orders", Low: r.Low, High: r.High, Last: proto.Int64(last), Token: r.Token,
			RequestId: &idnodev1.RequestId{Id: "return" + strconv.FormatInt(r.High, 10)},
		})
		if err != nil || !res.Returned {
			t.Fatalf("%+v %v", res, err)
		}
	}
	r, err := next("one")
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, generate(ctx, n, "", false), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	giveBack(r, r.Low-1)
	for range 3 { // Nothing is owed: each of these is given back before the next.
		if r, err = next("again" + strconv.FormatInt(r.High, 10)); err != nil {
			t.Fatal(err)
		}
		giveBack(r, r.Low-1)
	}
	if r, err = next("two"); err != nil {
		t.Fatal(err)
	}
	giveBack(r, r.Low+19_999) // Of 20,000 numbers, 2,000 were ahead: the rest takes 9 s.
	for range 3 {
		giveBack(r, r.Low+19_999)
	}
	err = generate(ctx, n, "", false)
	wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	if after := err.(*apierror.Error).RetryAfter; after < 5*time.Second || after > 10*time.Second {
		t.Errorf("to be tried again after %s", after)
	}
}
