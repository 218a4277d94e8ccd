package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a node of a cluster of its own.
type world = fsmtest.Node

func newWorld(t testing.TB) *world {
	t.Helper()
	return fsmtest.NewNode(t, time.Unix(1_700_000_000, 0), fsmtest.Member("A"))
}

const (
	stale        = idnodev1.Consistency_CONSISTENCY_STALE
	linearizable = idnodev1.Consistency_CONSISTENCY_LINEARIZABLE
)

// fakeCluster is a Cluster that records its calls.
type fakeCluster struct {
	status ClusterStatus
	asked  string
	err    error
}

func (c *fakeCluster) Status() ClusterStatus { return c.status }

func (c *fakeCluster) SetWatcher(ctx context.Context, tag string, watcher, force bool, principal *string) (uint64, error) {
	index, err := c.RemoveMember(ctx, tag, force, principal)
	c.asked = fmt.Sprintf("%s, a watcher: %t", c.asked, watcher)
	return index, err
}

func (c *fakeCluster) RemoveMember(_ context.Context, tag string, force bool, principal *string) (uint64, error) {
	c.asked = "remove " + tag
	if force {
		c.asked += " by force"
	}
	if principal != nil {
		c.asked += " for " + *principal
	}
	return 7, c.err
}

func (c *fakeCluster) Transfer(_ context.Context, tag string) (string, error) {
	c.asked = "transfer " + tag
	return "B", c.err
}

// fakeEtags counts in memory.
type fakeEtags struct {
	mu   sync.Mutex
	last map[string]uint64
	err  error
}

func (e *fakeEtags) Has(database string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last[database] > 0
}

func (e *fakeEtags) NextBlock(database string, n int) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return 0, e.err
	}
	if e.last == nil {
		e.last = map[string]uint64{}
	}
	first := e.last[database] + 1
	e.last[database] += uint64(n)
	return first, nil
}

// node is a Service in a world, with the parts that a test may change.
type node struct {
	*Service
	world   *world
	etags   *fakeEtags
	cluster *fakeCluster
}

func newNode(t testing.TB, w *world, change func(*Config)) node {
	t.Helper()
	n := node{world: w, etags: &fakeEtags{}, cluster: &fakeCluster{status: ClusterStatus{SelfID: "6e6f64652d612d2d2d2d2d2d2d2d2d2d"}}}
	cfg := Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: DefaultCallTimeout, MaxInFlight: DefaultMaxInFlight,
		Events: Events{
			Issued: func(string, docid.Kind, int64) {}, RangeIssued: func(string, int64) {}, RangeFromReserve: func(string) {},
			NumbersTaken: func(string, int64) {}, Used: func(string, string, string, int64) {}, RangeReturned: func(string, int64) {},
			BackedUp: func() {}, Refused: func(string) {},
		},
		Caller: func(context.Context) admission.Caller { return admission.Caller{} }, OwnEtags: func() []etags.Progress { return nil },
		OwnReserves: func() []reserve.Left { return nil }, ReserveTotal: func() *reserve.Total { return nil },
		Proposer: w, Linearizer: w, State: w.State, Etags: n.etags, Cluster: n.cluster,
		Tag: func() (string, bool) { return "A", true },
	}
	if change != nil {
		change(&cfg)
	}
	n.Service = New(cfg)
	return n
}

// wantError checks code, reason and field of an error.
func wantError(t *testing.T, err error, code apierror.Code, reason, field string) {
	t.Helper()
	var e *apierror.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want %s", err, reason)
	}
	if e.Code != code || e.Reason != reason || e.Field != field {
		t.Fatalf("error %s %s field %q (%s), want %s %s field %q", e.Code, e.Reason, e.Field, e.Message, code, reason, field)
	}
}

// same compares with go-cmp.
func same(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Fatalf("difference (-want +got):\n%s", d)
	}
}

// calling returns what makes a call of a method from a request.
func calling[Q, R any](method func(*Service, context.Context, Q) (R, error)) func(Q) func(node) error {
	return func(r Q) func(node) error {
		return func(n node) error { _, err := method(n.Service, context.Background(), r); return err }
	}
}

var (
	callNext   = calling((*Service).NextIdentity)
	callSeed   = calling((*Service).SeedIdentity)
	callDelete = calling((*Service).DeleteIdentity)
	callRange  = calling((*Service).NextRange)
	callReturn = calling((*Service).ReturnRange)
	callSet    = calling((*Service).SetHiLo)
)

// limitTest is a call that is accepted if reason is empty.
type limitTest struct {
	name          string
	call          func(node) error
	reason, field string
}

// checkLimits makes each call on a new node: one that is not accepted is refused with nothing proposed.
func checkLimits(t *testing.T, tests []limitTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, newWorld(t), nil)
			err := tt.call(n)
			if tt.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, apierror.CodeInvalidArgument, tt.reason, tt.field)
			if n.world.Proposals() != 0 {
				t.Error("a refused request was proposed")
			}
		})
	}
}
