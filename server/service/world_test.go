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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of one node, with faults of its proposals and reads.
type world struct {
	*fsmtest.Cluster
	t     testing.TB
	state *fsm.State

	mu       sync.Mutex
	proposed int
	// fail, if set, is what Propose returns; with lose the operation is applied
	// all the same.
	fail error
	lose bool
	// block, if set, holds Propose up until it is closed or the call ends.
	block chan struct{}
	// waiting counts the proposals that are held up.
	waiting int
	// unreadable is what Linearize returns.
	unreadable error
	// catchUp, if set, is called by Linearize: what this node did not know before.
	catchUp func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	c := fsmtest.New(t, time.Unix(1_700_000_000, 0), fsmtest.Member("A"))
	return &world{Cluster: c, t: t, state: c.State}
}

// Propose implements Proposer.
func (w *world) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	w.mu.Lock()
	block := w.block
	if block != nil {
		w.waiting++
	}
	w.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, outcome.NewUnknown(outcome.Deadline, ctx.Err())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proposed++
	if w.fail != nil && !w.lose {
		return nil, w.fail
	}
	answer, err := w.Cluster.Propose(ctx, operation)
	if w.fail != nil {
		return nil, w.fail
	}
	return answer, err
}

// Linearize implements Linearizer.
func (w *world) Linearize(context.Context) error {
	w.mu.Lock()
	catchUp, err := w.catchUp, w.unreadable
	w.mu.Unlock()
	if catchUp != nil {
		catchUp()
	}
	return err
}

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// held returns how many proposals were held up.
func (w *world) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

func (w *world) proposals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.proposed
}

const (
	stale        = idnodev1.Consistency_CONSISTENCY_STALE
	linearizable = idnodev1.Consistency_CONSISTENCY_LINEARIZABLE
)

// fakeCluster is a Cluster that remembers what it was asked.
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

// node is a Service in a world, with what a test may change.
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
		Caller: func(context.Context) Caller { return Caller{} }, OwnEtags: func() []OwnEtag { return nil },
		OwnReserves: func() []reserve.Left { return nil }, ReserveTotal: func() *reserve.Total { return nil },
		Proposer: w, Linearizer: w, State: w.state, Etags: n.etags, Cluster: n.cluster,
		Tag: func() (string, bool) { return "A", true },
	}
	if change != nil {
		change(&cfg)
	}
	n.Service = New(cfg)
	return n
}

// wantError checks code, reason and field of an error.
func wantError(t *testing.T, err error, code Code, reason, field string) {
	t.Helper()
	var e *Error
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

func encodeForTest(m proto.Message) ([]byte, error) { return proto.Marshal(m) }

// ProposeAll implements Proposer.
func (w *world) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	return fsmtest.Each(ctx, w.Propose, operations)
}
