package service

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/snowflake"
	"github.com/idnode/idnode/test/fsmtest"
)

// newPresent returns a world whose clock is the present: a node makes ids by its own clock.
func newPresent(t *testing.T) *world {
	t.Helper()
	return fsmtest.NewNode(t, time.Now(), fsmtest.Member("A"))
}

// TestAWorkerThroughTheService goes through the life of a pool and of a lease.
func TestAWorkerThroughTheService(t *testing.T) {
	n, ctx := newNode(t, newWorld(t), nil), context.Background()
	now := timestamppb.New(time.Unix(1_700_000_000, 0))
	define := &idnodev1.DefinePoolRequest{Name: "Orders", LayoutName: "javascript", Window: durationpb.New(time.Minute)}
	for range 2 {
		if _, err := n.DefinePool(ctx, define); err != nil {
			t.Fatal(err)
		}
	}
	acquire := &idnodev1.AcquireWorkerRequest{Pool: "ORDERS", Holder: "web-1", Now: now, RequestId: &idnodev1.RequestId{Id: "r"}}
	l, err := n.AcquireWorker(ctx, acquire)
	if err != nil || len(l.GetToken()) != tokenDigits || l.GetUntil()-l.GetFrom() != 6100 || l.GetLayout().GetWorkerBits() != 7 {
		t.Fatalf("%+v, %v", l, err)
	}
	again, err := n.AcquireWorker(ctx, acquire)
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, l)
	renewed, err := n.RenewWorker(ctx, &idnodev1.RenewWorkerRequest{Pool: "orders", Token: l.GetToken(), Now: now})
	if err != nil || renewed.GetUntil() != l.GetUntil() {
		t.Fatalf("%+v, %v", renewed, err)
	}
	pools, err := n.ListPools(ctx, &idnodev1.ListPoolsRequest{Prefix: "ord"})
	if err != nil || len(pools.GetPools()) != 1 || pools.GetPools()[0].GetWorkers() != 128 {
		t.Fatalf("%+v, %v", pools, err)
	}
	if _, err := n.AcquireWorker(ctx, &idnodev1.AcquireWorkerRequest{Pool: "orders", Holder: "web-2", Now: now}); err != nil {
		t.Fatal(err)
	}
	release := &idnodev1.ReleaseWorkerRequest{Pool: "orders", Token: l.GetToken(), Next: proto.Int64(l.GetFrom() + 5)}
	for range 2 {
		if _, err := n.ReleaseWorker(ctx, release); err != nil {
			t.Fatal(err)
		}
	}
	var holders []string
	req := &idnodev1.ListWorkersRequest{Pool: "orders", PageSize: 1}
	for more := true; more; more = req.GetPageToken() != "" {
		page, err := n.ListWorkers(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range page.GetWorkers() {
			holders = append(holders, w.GetHolder())
			if w.GetFree() != (w.GetHolder() == "web-1") {
				t.Errorf("%+v", w)
			}
		}
		req.PageToken = page.GetNextPageToken()
	}
	same(t, holders, []string{"web-1", "web-2"})
}

// TestAWorkerIsItsPrincipals: one caller does not take all workers under invented names, and the list
// shows whose each is.
func TestAWorkerIsItsPrincipals(t *testing.T) {
	n := newNode(t, newWorld(t), func(c *Config) {
		c.Caller = func(ctx context.Context) admission.Caller { who, _ := admission.CallerOf(ctx); return who }
	})
	shop := as("dns:shop")
	if _, err := n.DefinePool(shop, &idnodev1.DefinePoolRequest{Name: "p", LayoutName: "javascript"}); err != nil {
		t.Fatal(err)
	}
	now := timestamppb.New(time.Unix(1_700_000_000, 0))
	acquire := func(ctx context.Context, holder int) error {
		_, err := n.AcquireWorker(ctx, &idnodev1.AcquireWorkerRequest{Pool: "p", Holder: strconv.Itoa(holder), Now: now})
		return err
	}
	for i := range 64 {
		if err := acquire(shop, i); err != nil {
			t.Fatal(err)
		}
	}
	if e := apierror.Of(acquire(shop, 64)); e.Reason != apierror.ReasonPoolFull || e.Field != "holder" {
		t.Errorf("the 65th of 128 workers: %v", e)
	}
	if err := acquire(as("dns:other"), 0); err != nil {
		t.Errorf("another principal: %v", err)
	}
	page, err := n.ListWorkers(shop, &idnodev1.ListWorkersRequest{Pool: "p", PageSize: 100})
	if err != nil || len(page.GetWorkers()) != 65 {
		t.Fatalf("%v, %v", page, err)
	}
	for i, w := range page.GetWorkers() {
		if want := map[bool]string{true: "dns:shop", false: "dns:other"}[i < 64]; w.GetPrincipal() != want {
			t.Errorf("worker %d is of %q, want %q", i, w.GetPrincipal(), want)
		}
	}
}

// TestANodesOwnWorkerIsNobodys: it is for all callers, so it counts for none of them.
func TestANodesOwnWorkerIsNobodys(t *testing.T) {
	n := newNode(t, newPresent(t), func(c *Config) {
		c.Caller = func(ctx context.Context) admission.Caller { who, _ := admission.CallerOf(ctx); return who }
	})
	shop := as("dns:shop")
	if _, err := n.DefinePool(shop, &idnodev1.DefinePoolRequest{Name: "p"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.NextSnowflakes(shop, &idnodev1.NextSnowflakesRequest{Pool: "p"}); err != nil {
		t.Fatal(err)
	}
	page, err := n.ListWorkers(shop, &idnodev1.ListWorkersRequest{Pool: "p"})
	if err != nil || len(page.GetWorkers()) != 1 || page.GetWorkers()[0].GetPrincipal() != "" || page.GetWorkers()[0].GetHolder() != "node A" {
		t.Errorf("%v, %v", page, err)
	}
}

// TestEvictingAWorker: the list and the audit log say whose it was, and its holder renews it no more.
func TestEvictingAWorker(t *testing.T) {
	n, a := newAuditedNode(t)
	ctx, now := as("ops"), timestamppb.New(time.Unix(1_700_000_000, 0))
	if _, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Name: "Orders"}); err != nil {
		t.Fatal(err)
	}
	a.take(t)
	l, err := n.AcquireWorker(ctx, &idnodev1.AcquireWorkerRequest{Pool: "orders", Holder: "web-1", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	until := time.UnixMilli(snowflake.Layouts["twitter"].UnixMilli(l.GetUntil())).UTC()
	is := audit.Leased{Holder: "web-1", Principal: "ops", Until: until}
	first := audit.Record{
		Event: audit.EventWorkerAcquire, Outcome: audit.OutcomeIntended, Database: "default", Name: "orders",
		After: audit.Leased{Holder: "web-1"},
	}
	second := first
	second.Outcome, second.After, second.Index = audit.OutcomeDone, is, l.GetLogIndex()
	same(t, a.take(t), []audit.Record{first, second})
	evict := &idnodev1.EvictWorkerRequest{Pool: "ORDERS", Holder: "web-1", Worker: proto.Int32(0)}
	for range 2 {
		res, err := n.EvictWorker(ctx, evict)
		if err != nil || !res.GetUntil().AsTime().Equal(until) {
			t.Fatalf("%v, %v", res, err)
		}
		first = audit.Record{
			Event: audit.EventWorkerEvict, Outcome: audit.OutcomeIntended, Database: "default", Name: "orders",
			Before: audit.Leased{Holder: "web-1"},
		}
		second = first
		second.Outcome, second.Before, second.Index = audit.OutcomeDone, is, res.GetLogIndex()
		same(t, a.take(t), []audit.Record{first, second})
	}
	_, err = n.RenewWorker(ctx, &idnodev1.RenewWorkerRequest{Pool: "orders", Token: l.GetToken(), Now: now})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed, "worker")
	page, err := n.ListWorkers(ctx, &idnodev1.ListWorkersRequest{Pool: "orders"})
	if err != nil || !page.GetWorkers()[0].GetEvicted() || page.GetWorkers()[0].GetFree() {
		t.Errorf("%v, %v", page, err)
	}
	zero, one, below := int32(0), int32(1), int32(-1)
	for _, tt := range []struct {
		req    *idnodev1.EvictWorkerRequest
		code   apierror.Code
		reason string
		field  string
	}{
		{
			&idnodev1.EvictWorkerRequest{Pool: "orders", Holder: "web-2", Worker: &zero}, apierror.CodeFailedPrecondition,
			apierror.ReasonLeasePassed, "worker",
		},
		{&idnodev1.EvictWorkerRequest{Pool: "orders", Worker: &one}, apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed, "worker"},
		{&idnodev1.EvictWorkerRequest{Pool: "orders", Worker: &below}, apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed, "worker"},
		{&idnodev1.EvictWorkerRequest{Pool: "none", Worker: proto.Int32(0)}, apierror.CodeNotFound, apierror.ReasonPoolNotFound, "pool"},
		{&idnodev1.EvictWorkerRequest{Pool: "orders"}, apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "worker"},
		{
			&idnodev1.EvictWorkerRequest{Pool: "orders", Holder: strings.Repeat("h", 129), Worker: &zero}, apierror.CodeInvalidArgument,
			apierror.ReasonInvalidPool, "holder",
		},
	} {
		_, err := n.EvictWorker(ctx, tt.req)
		wantError(t, err, tt.code, tt.reason, tt.field)
	}
}

// TestTheLastPageToken: a forged token behind the largest number gets no page, and begins nothing anew.
func TestTheLastPageToken(t *testing.T) {
	n, ctx := newNode(t, newWorld(t), nil), context.Background()
	if _, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Name: "p"}); err != nil {
		t.Fatal(err)
	}
	req := &idnodev1.ListWorkersRequest{Pool: "p"}
	for after, valid := range map[int]bool{0: true, math.MaxInt - 1: true, math.MaxInt: false, -1: false} {
		c := cursor{scope: listWorkers, database: "default\x00p"}
		req.PageToken = c.token(strconv.Itoa(after))
		page, err := n.ListWorkers(ctx, req)
		if valid != (err == nil) || len(page.GetWorkers()) > 0 {
			t.Errorf("behind %d: %v, %v", after, page, err)
		}
	}
}

// TestWrongCallsOnWorkers: each is refused with its reason and field, and changes nothing.
func TestWrongCallsOnWorkers(t *testing.T) {
	n, ctx := newNode(t, newWorld(t), nil), context.Background()
	now := time.Unix(1_700_000_000, 0)
	if _, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Name: "p", Layout: &idnodev1.PoolLayout{
		Epoch: timestamppb.New(now), Unit: durationpb.New(time.Millisecond), TimeBits: 40, WorkerBits: 1, SequenceBits: 8,
	}}); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, holder := range []string{"a", "b"} {
		l, err := n.AcquireWorker(ctx, &idnodev1.AcquireWorkerRequest{Pool: "p", Holder: holder, Now: timestamppb.New(now)})
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, l.GetToken())
	}
	define := func(req *idnodev1.DefinePoolRequest) error { _, err := n.DefinePool(ctx, req); return err }
	acquire := func(req *idnodev1.AcquireWorkerRequest) error { _, err := n.AcquireWorker(ctx, req); return err }
	layout := func(change func(*idnodev1.PoolLayout)) error {
		l := &idnodev1.PoolLayout{
			Epoch: timestamppb.New(now), Unit: durationpb.New(time.Millisecond), TimeBits: 40, WorkerBits: 5, SequenceBits: 8,
		}
		change(l)
		return define(&idnodev1.DefinePoolRequest{Name: "q", Layout: l})
	}
	long := strings.Repeat("x", snowflake.MaxHolderBytes+1)
	_, before := n.world.State.Hash()
	for _, c := range []struct {
		err    error
		code   apierror.Code
		reason string
		field  string
	}{
		{define(&idnodev1.DefinePoolRequest{Name: ""}), apierror.CodeInvalidArgument, apierror.ReasonInvalidName, "name"},
		{define(&idnodev1.DefinePoolRequest{Name: "p"}), apierror.CodeFailedPrecondition, apierror.ReasonPoolDiffers, "layout"},
		{
			define(&idnodev1.DefinePoolRequest{Name: "q", LayoutName: "x"}), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool,
			"layout_name",
		},
		{
			define(&idnodev1.DefinePoolRequest{Name: "q", Window: durationpb.New(25 * time.Hour)}), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidPool, "window",
		},
		{
			define(&idnodev1.DefinePoolRequest{Name: "q", Window: durationpb.New(-1)}), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool,
			"window",
		},
		{
			layout(func(l *idnodev1.PoolLayout) { l.WorkerBits = 17 }), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool,
			"layout.worker_bits",
		},
		{layout(func(l *idnodev1.PoolLayout) { l.SequenceBits = 30 }), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "layout"},
		{layout(func(l *idnodev1.PoolLayout) { l.TimeBits = 30 }), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "layout.time_bits"},
		{layout(func(l *idnodev1.PoolLayout) { l.Unit = durationpb.New(1) }), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "layout"},
		{layout(func(l *idnodev1.PoolLayout) { l.Unit = nil }), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "layout.unit"},
		{
			layout(func(l *idnodev1.PoolLayout) { l.Epoch = timestamppb.New(now.Add(time.Second)) }),
			apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "layout.epoch",
		},
		{
			acquire(&idnodev1.AcquireWorkerRequest{Pool: "none", Holder: "a", Now: timestamppb.New(now)}), apierror.CodeNotFound,
			apierror.ReasonPoolNotFound, "pool",
		},
		{
			acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Now: timestamppb.New(now)}), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool,
			"holder",
		},
		{acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: long}), apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "holder"},
		{
			acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: "a\n", Now: timestamppb.New(now)}),
			apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "holder",
		},
		{acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: "a"}), apierror.CodeFailedPrecondition, apierror.ReasonClockSkew, "now"},
		{
			acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: "c", Now: timestamppb.New(now)}), apierror.CodeResourceExhausted,
			apierror.ReasonPoolFull, "pool",
		},
		{
			acquire(&idnodev1.AcquireWorkerRequest{Pool: "p", Holder: "a", Now: timestamppb.New(now), Window: durationpb.New(time.Hour)}),
			apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "window",
		},
		{
			second(n.RenewWorker(ctx, &idnodev1.RenewWorkerRequest{Pool: "p", Token: tokens[1]})), apierror.CodeFailedPrecondition,
			apierror.ReasonClockSkew, "now",
		},
		{
			second(n.RenewWorker(ctx, &idnodev1.RenewWorkerRequest{Pool: "p", Token: tokens[1], Now: timestamppb.New(now)})),
			apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed, "worker",
		},
		{
			second(n.RenewWorker(ctx, &idnodev1.RenewWorkerRequest{Pool: "p", Token: "ABCDEF0123456789"})), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidToken, "token",
		},
		{
			second(n.ReleaseWorker(ctx, &idnodev1.ReleaseWorkerRequest{Pool: "p", Token: tokens[1], Next: proto.Int64(0)})),
			apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed, "worker",
		},
		{
			second(n.ReleaseWorker(ctx, &idnodev1.ReleaseWorkerRequest{Pool: "p", Token: tokens[1]})),
			apierror.CodeInvalidArgument, apierror.ReasonInvalidPool, "next",
		},
		{second(n.ListWorkers(ctx, &idnodev1.ListWorkersRequest{Pool: "none"})), apierror.CodeNotFound, apierror.ReasonPoolNotFound, "pool"},
		{
			second(n.ListWorkers(ctx, &idnodev1.ListWorkersRequest{Pool: "p", PageToken: "x"})),
			apierror.CodeInvalidArgument, apierror.ReasonInvalidPageToken, "page_token",
		},
		{
			second(n.NextSnowflakes(ctx, &idnodev1.NextSnowflakesRequest{Pool: "p", Count: -1})), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidCount, "count",
		},
		{
			second(n.NextSnowflakes(ctx, &idnodev1.NextSnowflakesRequest{Pool: "none"})), apierror.CodeNotFound, apierror.ReasonPoolNotFound,
			"pool",
		},
	} {
		wantError(t, c.err, c.code, c.reason, c.field)
	}
	if _, after := n.world.State.Hash(); after != before {
		t.Error("a refused call changed the state")
	}
}

func second[T any](_ T, err error) error { return err }

// TestSnowflakesOfANode: rising, of one worker, and without the cluster while the window lasts.
func TestSnowflakesOfANode(t *testing.T) {
	w := newPresent(t)
	n, ctx := newNode(t, w, nil), context.Background()
	if _, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Name: "orders"}); err != nil {
		t.Fatal(err)
	}
	var all []int64
	next := func(count int32) {
		t.Helper()
		res, err := n.NextSnowflakes(ctx, &idnodev1.NextSnowflakesRequest{Pool: "orders", Count: count})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, res.GetIds()...)
	}
	next(0)
	w.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	next(1000)
	if len(all) != 1001 || !slices.IsSorted(all) || slices.Compact(all)[1000] != all[1000] {
		t.Errorf("%d ids", len(all))
	}
	units, number, _ := snowflake.Layouts["twitter"].Split(all[1000])
	if at := time.UnixMilli(snowflake.Layouts["twitter"].UnixMilli(units)); number != 0 || time.Since(at).Abs() > time.Minute {
		t.Errorf("the last is of worker %d at %s", number, at)
	}
	_, err := n.NextSnowflakes(ctx, &idnodev1.NextSnowflakesRequest{Pool: "others"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
}
