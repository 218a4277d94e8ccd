package client_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// gate holds calls up at a node until it is opened.
type gate struct {
	// arrived has one value for each call that was held up.
	arrived chan struct{}
	opened  chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 64), opened: make(chan struct{})} }

func (g *gate) hold(ctx context.Context, _ proto.Message) error {
	g.arrived <- struct{}{}
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// crowd is a node that holds a call for "orders", so that other callers of "orders" wait to
// share a call.
type crowd struct {
	*fakeCluster
	t      *testing.T
	client *client.Client
	gate   *gate
	first  sync.WaitGroup
}

func newCrowd(t *testing.T) *crowd {
	f := newCluster(t, 1)
	return crowdAt(t, f, client.Config{Endpoints: f.addrs()})
}

// crowdAt is a crowd at the first node of a cluster, which cfg leads to.
func crowdAt(t *testing.T, f *fakeCluster, cfg client.Config) *crowd {
	c := &crowd{fakeCluster: f, t: t, gate: newGate()}
	c.nodes[0].hook(c.gate.hold, nil)
	cfg.Timeout = time.Second
	c.client = connect(t, cfg)
	c.begin("orders")
	return c
}

// begin makes a call for a name that shares none, and returns when it is held up.
func (c *crowd) begin(name string, opts ...client.Option) {
	c.first.Go(func() {
		if _, err := c.client.Identity(name).Next(c.t.Context(), opts...); err != nil && !errors.Is(err, client.ErrClosed) {
			c.t.Error(err)
		}
	})
	<-c.gate.arrived
}

// next takes a value.
func (c *crowd) next(values chan<- int64) {
	v, err := c.client.Identity("orders").Next(c.t.Context())
	if err != nil {
		c.t.Error(err)
	}
	values <- v
}

// release lets the call through, which takes 1, and holds the next one up: that of
// the waiting callers. It ends with after, if that is not nil.
func (c *crowd) release(after func(context.Context, proto.Message) error) *gate {
	next := newGate()
	c.nodes[0].hook(next.hold, after)
	close(c.gate.opened)
	<-next.arrived
	c.first.Wait()
	return next
}

// waiting begins n calls and returns when all wait.
func (c *crowd) waiting(n int, call func()) *sync.WaitGroup {
	var wg sync.WaitGroup
	all := client.Waiting(c.client) + n
	for range n {
		wg.Go(call)
	}
	for client.Waiting(c.client) < all {
		time.Sleep(time.Millisecond)
	}
	return &wg
}

// counts returns how many values each call for an identity asked for.
func (c *crowd) counts() []int64 {
	var counts []int64
	for _, r := range c.nodes[0].requests() {
		if r, ok := r.(*idnodev1.NextIdentityRequest); ok {
			counts = append(counts, r.GetCount())
		}
	}
	return counts
}

// TestCallersShareABlock: a caller that comes while a call is in flight shares the
// next one.
func TestCallersShareABlock(t *testing.T) {
	c := newCrowd(t)
	values := make(chan int64, 10)
	wg := c.waiting(cap(values), func() { c.next(values) })
	close(c.release(nil).opened)
	wg.Wait()
	if got := c.counts(); !slices.Equal(got, []int64{1, 10}) {
		t.Errorf("calls for %v values, want 1 and 10", got)
	}
	got := map[int64]bool{}
	for range cap(values) {
		got[<-values] = true
	}
	for v := int64(2); v <= 11; v++ {
		if !got[v] {
			t.Errorf("no caller got %d", v)
		}
	}
}

// TestNobodyWaitsForAnotherIdentity: its first caller makes a call at once.
func TestNobodyWaitsForAnotherIdentity(t *testing.T) {
	c := newCrowd(t)
	c.begin("invoices")
	close(c.gate.opened)
	c.first.Wait()
}

// TestOwnRequestIDIsNotShared: the caller's own id makes a call of its own.
func TestOwnRequestIDIsNotShared(t *testing.T) {
	c := newCrowd(t)
	c.begin("orders", client.WithRequestID("mine"))
	close(c.gate.opened)
	c.first.Wait()
}

// TestWhoLeavesEarlyMayComeBack: a caller whose deadline ends while a shared call
// is in flight can ask for its value again, and no other caller gets it.
func TestWhoLeavesEarlyMayComeBack(t *testing.T) {
	c := newCrowd(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	values := make(chan int64, 1)
	wg := c.waiting(1, func() {
		_, err := c.client.Identity("orders").Next(ctx)
		failed <- err
	})
	other := c.waiting(2, func() { c.next(values) })
	second := c.release(nil)
	cancel()
	err := <-failed
	var e *client.Error
	if !errors.Is(err, context.Canceled) || !errors.Is(err, client.ErrOutcomeUnknown) || !errors.As(err, &e) || e.RequestID.ID == "" {
		t.Fatalf("%v: want an error with an unknown outcome and a request id", err)
	}
	close(second.opened)
	<-values
	<-values
	wg.Wait()
	other.Wait()
	for range 2 {
		id, err := c.client.Next(t.Context(), "orders|", client.WithRetryOf(e.RequestID))
		if err != nil || id != "orders/2" {
			t.Errorf("asked again: %s, %v; want orders/2, the first of the waiting callers", id, err)
		}
	}
	if v, err := c.client.Identity("orders").Get(t.Context()); err != nil || v != 4 {
		t.Errorf("the identity's last value is %d, want 4: %v", v, err)
	}
}

// TestWhoLeavesBeforeTheCallTakesNothing is certain of that.
func TestWhoLeavesBeforeTheCallTakesNothing(t *testing.T) {
	c := newCrowd(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	wg := c.waiting(1, func() {
		_, err := c.client.Identity("orders").Next(ctx)
		failed <- err
	})
	cancel()
	wg.Wait()
	if err := <-failed; !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("%v: want an error that says that nothing happened", err)
	}
	close(c.gate.opened)
	c.first.Wait()
	if got := c.counts(); !slices.Equal(got, []int64{1}) {
		t.Errorf("calls for %v values", got)
	}
}

// TestTheLastValuesAreGiven: a block that is too large takes nothing, so callers that
// wanted it go one by one.
func TestTheLastValuesAreGiven(t *testing.T) {
	c := newCrowd(t)
	c.nodes[0].hook(func(_ context.Context, r proto.Message) error {
		if r, ok := r.(*idnodev1.NextIdentityRequest); ok && r.GetCount() > 1 {
			return failure(codes.OutOfRange, "COUNTER_EXHAUSTED", "count")
		}
		return nil
	}, nil)
	values := make(chan int64, 3)
	wg := c.waiting(cap(values), func() { c.next(values) })
	close(c.gate.opened)
	wg.Wait()
	c.first.Wait()
}

// TestAnErrorIsShared: callers that share a call share its failure, but each has
// its own request id to ask again with.
func TestAnErrorIsShared(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	errs := make(chan error, 3)
	wg := c.waiting(cap(errs), func() {
		_, err := c.client.Identity("orders").Next(t.Context())
		errs <- err
	})
	second := c.release(always(failure(codes.Aborted, "OUTCOME_UNKNOWN", "")))
	close(second.opened)
	wg.Wait()
	c.nodes[0].hook(nil, nil)
	got := map[string]bool{}
	for range cap(errs) {
		var e *client.Error
		if err := <-errs; !errors.As(err, &e) || !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		id, err := c.client.Next(t.Context(), "orders|", client.WithRetryOf(e.RequestID))
		if err != nil {
			t.Error(err)
		}
		got[id] = true
	}
	for _, id := range []string{"orders/2", "orders/3", "orders/4"} {
		if !got[id] {
			t.Errorf("%s is missing among %v", id, got)
		}
	}
}

// TestCallersRepeatUntilTheyKnow: callers that repeat their call with the request id in the
// error until its outcome is known each get a value of their own, and no value is left over,
// whatever fails.
func TestCallersRepeatUntilTheyKnow(t *testing.T) {
	f := newCluster(t, 1)
	lost := func(chance float64) func(context.Context, proto.Message) error {
		return func(_ context.Context, req proto.Message) error {
			if _, ok := req.(*idnodev1.NextIdentityRequest); ok && rand.Float64() < chance {
				return failure(codes.Aborted, "OUTCOME_UNKNOWN", "")
			}
			return nil
		}
	}
	f.nodes[0].hook(lost(0.6), lost(0.6))
	c := connect(t, client.Config{Endpoints: f.addrs(), Timeout: 50 * time.Millisecond})
	values := make(chan int64, 200)
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			for range cap(values) / 50 {
				values <- untilKnown(t, c.Identity("orders"))
			}
		})
	}
	callers.Wait()
	close(values)
	given := map[int64]int{}
	for v := range values {
		given[v]++
	}
	for v := int64(1); v <= int64(cap(values)); v++ {
		if given[v] != 1 {
			t.Errorf("%d was given %d times", v, given[v])
		}
	}
}

// untilKnown takes a value as a caller does that wants neither a value twice nor a hole.
func untilKnown(t *testing.T, i client.Identity) int64 {
	var again []client.Option
	for range 1000 {
		v, err := i.Next(t.Context(), again...)
		var e *client.Error
		switch {
		case err == nil:
			return v
		case !errors.As(err, &e):
			t.Error(err)
			return 0
		case !e.OutcomeUnknown && again != nil:
			t.Errorf("a repeated call ended with %v", err)
			return 0
		case e.OutcomeUnknown:
			again = []client.Option{client.WithRetryOf(e.RequestID)}
		}
	}
	t.Error("no answer")
	return 0
}

// TestTheErrorNamesWhatWasAsked: a repeat that fails too can be repeated, and never names the
// block of all.
func TestTheErrorNamesWhatWasAsked(t *testing.T) {
	f := newCluster(t, 1)
	f.nodes[0].hook(always(failure(codes.Aborted, "OUTCOME_UNKNOWN", "")), nil)
	c := connect(t, client.Config{Endpoints: f.addrs(), Timeout: 50 * time.Millisecond})
	for _, id := range []string{"mine", "0123456789abcdef0123456789abcdef.2/3", "block.c0ffee.3.2"} {
		asked := client.RequestID{ID: id, Since: 7}
		_, err := c.Identity("orders").Next(t.Context(), client.WithRetryOf(asked))
		var e *client.Error
		if !errors.As(err, &e) || !e.OutcomeUnknown || e.RequestID != asked {
			t.Errorf("asked with %s: %+v", id, e)
		}
	}
}

// TestABlocksRequestIDIsNoCallersOwn: a block's request id is refused in all other calls.
func TestABlocksRequestIDIsNoCallersOwn(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	i := c.Identity("orders")
	for _, id := range []string{"block.c0ffee.3", "block.c0ffee.3.4", "block.c0ffee.3.0", "block.c0ffee.9999.1", "block.", "block.x.y.z"} {
		_, one := i.Next(t.Context(), client.WithRequestID(id))
		_, three := i.NextN(t.Context(), 3, client.WithRequestID(id))
		for _, err := range []error{one, three} {
			var e *client.Error
			if !errors.As(err, &e) || e.Reason != "INVALID_REQUEST_ID" {
				t.Errorf("%s: %v, want INVALID_REQUEST_ID", id, err)
			}
		}
	}
	if v, err := i.Next(t.Context(), client.WithRequestID("0123456789abcdef0123456789abcdef.1/5")); v != 1 || err != nil {
		t.Errorf("an id of the caller's own: %d, %v", v, err)
	}
	if v, err := i.Next(t.Context()); v != 2 || err != nil {
		t.Errorf("the next value: %d, %v; the call before took one", v, err)
	}
}

// TestCloseEndsThoseWhoWait: no waiting caller is left behind.
func TestCloseEndsThoseWhoWait(t *testing.T) {
	c := newCrowd(t)
	errs := make(chan error, 3)
	wg := c.waiting(cap(errs), func() {
		_, err := c.client.Identity("orders").Next(context.Background())
		errs <- err
	})
	c.nodes[0].hook(nil, nil)
	if err := c.client.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	c.first.Wait()
	for range cap(errs) {
		if err := <-errs; err == nil {
			t.Error("a call of a closed client succeeded")
		}
	}
}
