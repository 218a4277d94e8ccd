package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of nothing but its replicated state: operations are encoded
// into entries and applied at once.
type world struct {
	t     testing.TB
	state *fsm.State
	id    []byte

	mu       sync.Mutex
	index    uint64
	now      time.Time
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

var nodeA = []byte("node-a----------")

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, state: fsm.New(fsm.Config{}), id: []byte("cluster---------"), now: time.Unix(1_700_000_000, 0)}
	member := &raftlogv1.Member{Id: nodeA, Tag: "A", GrpcAddress: "a:7400", RaftAddress: "a:7401", Voter: true, LogFormat: 1}
	w.must(op.Envelope{}, &raftlogv1.Bootstrap{ClusterId: w.id, Members: []*raftlogv1.Member{member}})
	w.proposed = 0
	return w
}

// must applies an operation that the test itself needs.
func (w *world) must(e op.Envelope, payload proto.Message) *raftlogv1.Result {
	w.t.Helper()
	operation, err := e.Encode(payload)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := w.Propose(context.Background(), operation)
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := op.DecodeResult(answer)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
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
	w.index++
	header := raftlog.Header{Format: 1, ClusterID: w.id, TimeUnixNano: w.now.UnixNano()}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	results, err := w.state.Apply(w.index, raftlog.AppendEntry(nil, header, [][]byte{group}))
	if err != nil {
		w.t.Errorf("apply: %v", err)
		return nil, err
	}
	if w.fail != nil {
		return nil, w.fail
	}
	return slices.Clone(results[0].Results[0]), nil
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

// fakeCluster is a Cluster that remembers what it was asked.
type fakeCluster struct {
	status ClusterStatus
	asked  string
	token  string
	err    error
	// joining, if set, is called while a node is asked to join.
	joining func()
}

func (c *fakeCluster) Status() ClusterStatus { return c.status }

func (c *fakeCluster) Join(_ context.Context, req JoinRequest, token string) (*raftlogv1.Member, error) {
	c.asked, c.token = "join "+req.Address+" "+req.Tag, token
	if c.joining != nil {
		c.joining()
	}
	if c.err != nil {
		return nil, c.err
	}
	return &raftlogv1.Member{Id: []byte("node-b----------"), Tag: "B"}, nil
}

func (c *fakeCluster) Remove(_ context.Context, tag string, force bool, principal *string) (uint64, error) {
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
		Proposer: w, Linearizer: w, State: w.state, Etags: n.etags, Cluster: n.cluster,
		Tag: func() (string, bool) { return "A", true },
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if n.Service, err = New(cfg); err != nil {
		t.Fatal(err)
	}
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
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("difference (-want +got):\n%s", d)
	}
}

func encodeForTest(m proto.Message) ([]byte, error) { return proto.Marshal(m) }

// ProposeAll implements service.Proposer.
func (w *world) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	results, errs := make([][]byte, len(operations)), make([]error, len(operations))
	for i, operation := range operations {
		results[i], errs[i] = w.Propose(ctx, operation)
	}
	return results, errs
}
