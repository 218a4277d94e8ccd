package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// both runs a test with calls that share messages, and with unary ones.
func both(t *testing.T, test func(t *testing.T, cfg client.Config)) {
	t.Run("shared", func(t *testing.T) { test(t, client.Config{}) })
	t.Run("unary", func(t *testing.T) { test(t, client.Config{Unshared: true}) })
}

func TestCallsGoStraightToTheLeader(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 3)
		f.lead("C")
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		for i := range 5 {
			wantNext(t, c, int64(i+1))
		}
		if id, err := c.Next(t.Context(), "users/"); err != nil || id != "users/0000000000000000001-A" {
			t.Error(id, err)
		}
		if a, b, l := len(f.nodes[0].requests()), len(f.nodes[1].requests()), len(f.nodes[2].requests()); a != 1 || b != 0 || l != 5 {
			t.Errorf("calls at A, B, C: %d %d %d", a, b, l)
		}
	})
}

// TestLeaderBesideTheEndpoints is found by the address that the cluster tells,
// and not used where that leads nowhere, or to another node.
func TestLeaderBesideTheEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name       string
		advertised func(f *fakeCluster) string
		at         int
	}{
		{"reachable", func(f *fakeCluster) string { return f.nodes[1].addr }, 1},
		{"unreachable", func(*fakeCluster) string { return "node-b.invalid:7400" }, 0},
		{"another node", func(f *fakeCluster) string { return f.nodes[2].addr }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newCluster(t, 3)
			f.lead("B")
			f.nodes[1].advertised = tt.advertised(f)
			c := connect(t, client.Config{Endpoints: []string{f.nodes[0].addr}})
			if _, err := c.Identity("orders").Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(f.nodes[tt.at].requests()); got != 1 {
				t.Errorf("node %s got %d calls", f.nodes[tt.at].tag, got)
			}
		})
	}
}

// TestAnAddressWithAZone is dialled as it is.
func TestAnAddressWithAZone(t *testing.T) {
	const zoned = "[fe80::1%eth0]:7400"
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: []string{zoned}, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		if address != zoned {
			return nil, fmt.Errorf("%s was dialled", address)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", f.nodes[0].addr)
	}})
	if _, err := c.Identity("orders").Next(t.Context()); err != nil {
		t.Error(err)
	}
}

// refused returns the error of a call that no node answers otherwise. The time of a call
// may be over in the middle of a try, which is then unknown: such a call is made again.
func refused(t *testing.T, c *client.Client) error {
	t.Helper()
	_, err := c.Identity("orders").Next(t.Context())
	for again := 0; again < 3 && errors.Is(err, client.ErrOutcomeUnknown); again++ {
		_, err = c.Identity("orders").Next(t.Context())
	}
	return err
}

// TestStaleLeader has every node name a leader that answers NO_QUORUM: the
// call goes elsewhere at once, and when no node helps it ends by the bound.
func TestStaleLeader(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 3)
		f.nodes[0].hook(always(failure(codes.Unavailable, "NO_QUORUM", "")), nil)
		cfg.Endpoints, cfg.Timeout = f.addrs(), time.Second
		c := connect(t, cfg)
		if _, err := c.Identity("orders").Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, n := range f.nodes {
			n.hook(always(failure(codes.Unavailable, "NO_QUORUM", "")), nil)
		}
		start := time.Now()
		if err := refused(t, c); !errors.Is(err, client.ErrNoQuorum) || errors.Is(err, client.ErrOutcomeUnknown) {
			t.Error(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestLostAnswerCountsOnce loses the answer of the first try.
func TestLostAnswerCountsOnce(t *testing.T) {
	for _, lost := range []error{
		failure(codes.Unavailable, "OUTCOME_UNKNOWN", ""),
		status.Error(codes.Unavailable, "connection lost"),
	} {
		both(t, func(t *testing.T, cfg client.Config) {
			f := newCluster(t, 3)
			var once atomic.Bool
			f.nodes[0].hook(nil, func(context.Context, proto.Message) error {
				if once.Swap(true) {
					return nil
				}
				return lost
			})
			cfg.Endpoints = f.addrs()
			c := connect(t, cfg)
			wantNext(t, c, 1)
			one := f.nodes[0].requests()[0].(*idnodev1.NextIdentityRequest).GetRequestId()
			two := f.nodes[1].requests()[0].(*idnodev1.NextIdentityRequest).GetRequestId()
			if len(one.GetId()) != 32 || one.RetrySince == nil || one.GetRetrySince() != 10 {
				t.Errorf("first try: %v; it does not say what was known before it, and may be late", one)
			}
			if !proto.Equal(one, two) {
				t.Errorf("second try: %v, want %v", two, one)
			}
		})
	}
}

// TestLostAnswerAfterAnIdleTime: the retry names an index from right before the
// first try, not from before the client was idle and others were busy.
func TestLostAnswerAfterAnIdleTime(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 2)
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		if _, err := c.Identity("orders").Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		const busy = 10_000_000
		f.mu.Lock()
		f.index = busy
		f.mu.Unlock()
		client.Age(c, 6*time.Second)
		var once atomic.Bool
		f.nodes[0].hook(nil, func(context.Context, proto.Message) error {
			if once.Swap(true) {
				return nil
			}
			return status.Error(codes.Unavailable, "connection lost")
		})
		wantNext(t, c, 2)
		retry := f.nodes[1].requests()[0].(*idnodev1.NextIdentityRequest).GetRequestId()
		if retry.RetrySince == nil || retry.GetRetrySince() != busy {
			t.Errorf("the retry says %v, want %d", retry, busy)
		}
	})
}

// TestUnknownOutcomeIsSaid when the time ends before an answer comes, with
// what it takes to repeat the call.
func TestUnknownOutcomeIsSaid(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 2)
		for _, n := range f.nodes {
			n.hook(nil, hang)
		}
		cfg.Endpoints, cfg.Timeout, cfg.TryTimeout = f.addrs(), 1200*time.Millisecond, 300*time.Millisecond
		c := connect(t, cfg)
		_, err := c.Identity("orders").Next(t.Context())
		var e *client.Error
		if !errors.Is(err, client.ErrOutcomeUnknown) || !errors.As(err, &e) || e.RequestID.ID == "" || e.RequestID.Since != 10 {
			t.Fatalf("%#v", err)
		}
		for _, n := range f.nodes {
			n.hook(nil, nil)
		}
		v, err := c.Identity("orders").Next(t.Context(), client.WithRetryOf(e.RequestID))
		if err != nil || v != 1 {
			t.Error(v, err)
		}
	})
}

func TestCallersDeadline(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		// The connection is there before: a deadline that ends before anything is sent
		// leaves nothing unknown.
		if _, err := c.Identity("orders").Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.nodes[0].hook(hang, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Identity("orders").Next(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
}

func TestRefusalsAreFinal(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want error
	}{
		{failure(codes.AlreadyExists, "ID_CLAIMED", ""), client.ErrIDClaimed},
		{failure(codes.Aborted, "CONCURRENCY", ""), client.ErrConcurrency},
		{failure(codes.ResourceExhausted, "QUOTA", ""), client.ErrQuota},
		{failure(codes.ResourceExhausted, "STORAGE_FULL", ""), client.ErrStorageFull},
		{failure(codes.OutOfRange, "COUNTER_EXHAUSTED", ""), client.ErrExhausted},
		{failure(codes.NotFound, "IDENTITY_NOT_FOUND", ""), client.ErrNotFound},
		{failure(codes.InvalidArgument, "INVALID_NAME", "name"), client.ErrInvalid},
		{failure(codes.AlreadyExists, "REQUEST_ID_REUSED", ""), client.ErrRequestIDReused},
		{failure(codes.FailedPrecondition, "REQUEST_ID_EXPIRED", ""), client.ErrRequestIDExpired},
	} {
		both(t, func(t *testing.T, cfg client.Config) {
			f := newCluster(t, 2)
			f.nodes[0].hook(always(tt.err), nil)
			cfg.Endpoints = f.addrs()
			c := connect(t, cfg)
			_, err := c.Identity("orders").Next(t.Context())
			if !errors.Is(err, tt.want) || errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrNoQuorum) {
				t.Errorf("%v is not %v alone", err, tt.want)
			}
			if len(f.nodes[0].requests()) != 1 || len(f.nodes[1].requests()) != 0 {
				t.Error("a refusal was retried")
			}
		})
	}
}

func TestErrorAs(t *testing.T) {
	f := newCluster(t, 1)
	f.nodes[0].hook(always(failure(codes.InvalidArgument, "INVALID_NAME", "name")), nil)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	_, err := c.Identity("orders").Next(t.Context())
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	got := client.Error{Code: e.Code, Reason: e.Reason, Field: e.Field, Message: e.Message}
	want := client.Error{Code: codes.InvalidArgument, Reason: "INVALID_NAME", Field: "name", Message: "because"}
	if got != want {
		t.Errorf("%+v", got)
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("status.Code is %s", status.Code(err))
	}
}

// TestOverloadIsRetriedAFewTimes and then said.
func TestOverloadIsRetriedAFewTimes(t *testing.T) {
	f := newCluster(t, 1)
	f.nodes[0].hook(always(failure(codes.ResourceExhausted, "OVERLOADED", "")), nil)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	if _, err := c.Identity("orders").Next(t.Context()); !errors.Is(err, client.ErrOverloaded) {
		t.Error(err)
	}
	if n := len(f.nodes[0].requests()); n != 4 {
		t.Errorf("%d tries", n)
	}
}

// unusedAddr is an address without a listener.
func unusedAddr(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().String()
}

// TestNobodyAnswersInTime: a node that is reached, and silent, is no missing one.
func TestNobodyAnswersInTime(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		f.nodes[0].hook(func(ctx context.Context, _ proto.Message) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}, nil)
		cfg.Endpoints, cfg.Timeout = f.addrs(), 300*time.Millisecond
		c := connect(t, cfg)
		_, read := c.Identity("orders").Get(t.Context())
		claimed := c.Claim(t.Context(), "users/ayende")
		for err, unknown := range map[error]bool{read: false, claimed: true} {
			if !errors.Is(err, client.ErrDeadline) || errors.Is(err, client.ErrNoEndpoint) || errors.Is(err, client.ErrOutcomeUnknown) != unknown {
				t.Error(err)
			}
		}
	})
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c := connect(t, client.Config{Endpoints: []string{unusedAddr(t), unusedAddr(t)}, Timeout: 300 * time.Millisecond})
	_, err := c.Identity("orders").Next(t.Context())
	if !errors.Is(err, client.ErrNoEndpoint) || errors.Is(err, client.ErrOutcomeUnknown) {
		t.Error(err)
	}
}

// TestAnAnswerTellsMoreThanSilence: the error is that of the node that answered, though
// the last try reached none.
func TestAnAnswerTellsMoreThanSilence(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		f.nodes[0].hook(always(failure(codes.Unavailable, "NO_QUORUM", "")), nil)
		cfg.Endpoints, cfg.Timeout = append(f.addrs(), unusedAddr(t), unusedAddr(t), unusedAddr(t)), 500*time.Millisecond
		c := connect(t, cfg)
		if err := refused(t, c); !errors.Is(err, client.ErrNoQuorum) {
			t.Error(err)
		}
	})
}

// TestBlackHole has an endpoint that accepts and never says a word.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: []string{hole.Addr().String(), f.nodes[0].addr}})
	start := time.Now()
	if _, err := c.Identity("orders").Next(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Next(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
}

// forward returns an address whose connections lead to target. They swallow everything once cut
// is set.
func forward(t *testing.T, target string, cut *atomic.Bool) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { lis.Close(); running.Wait() })
	pump := func(to, from net.Conn) {
		defer to.Close()
		_, _ = io.Copy(swallowing{to, cut}, from)
	}
	running.Go(func() {
		for {
			dialer, err := lis.Accept()
			if err != nil {
				return
			}
			node, err := net.Dial("tcp", target)
			if err != nil {
				dialer.Close()
				continue
			}
			running.Go(func() { pump(node, dialer) })
			running.Go(func() { pump(dialer, node) })
		}
	})
	return lis.Addr().String()
}

// swallowing is a connection that swallows what is written once cut is set.
type swallowing struct {
	to  io.Writer
	cut *atomic.Bool
}

func (s swallowing) Write(b []byte) (int, error) {
	if s.cut.Load() {
		return len(b), nil
	}
	return s.to.Write(b)
}

// TestConnectionIntoABlackHole has a connection that carried calls swallow
// everything from one moment on.
func TestConnectionIntoABlackHole(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 2)
		var cut atomic.Bool
		cfg.Endpoints, cfg.TryTimeout = []string{forward(t, f.nodes[0].addr, &cut), f.nodes[1].addr}, 500*time.Millisecond
		c := connect(t, cfg)
		for i := range 20 {
			if i == 5 {
				cut.Store(true)
				f.lead("B")
			}
			wantNext(t, c, int64(i+1))
		}
	})
}

// TestSilentLeader stops answering with the connection up; the next try goes
// elsewhere and the calls after it do not wait again.
func TestSilentLeader(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 2)
		f.nodes[0].hook(hang, nil)
		cfg.Endpoints, cfg.TryTimeout = f.addrs(), 700*time.Millisecond
		c := connect(t, cfg)
		f.lead("B") // what the look after the failure finds
		for i := range 20 {
			wantNext(t, c, int64(i+1))
		}
		if n := len(f.nodes[0].requests()); n != 1 {
			t.Errorf("the silent node was asked %d times", n)
		}
	})
}

// TestASlowLeaderIsAskedOnce, though the client has reason to look where it is: it is
// overloaded, so that it refuses to tell its status; or it is no endpoint, and no longer known
// as the leader.
func TestASlowLeaderIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, forgotten := range []bool{false, true} {
		t.Run(fmt.Sprintf("forgotten=%t", forgotten), func(t *testing.T) {
			f := newCluster(t, 2)
			c := connect(t, client.Config{Endpoints: f.addrs()[1:], Unshared: true})
			if _, err := c.Identity("orders").Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.nodes[0].hook(func(ctx context.Context, r proto.Message) error {
				if name := r.(*idnodev1.NextIdentityRequest).GetName(); name == "broken" {
					return status.Error(codes.Unavailable, "broken")
				}
				if !forgotten {
					f.nodes[0].refuseStatus()
				} else {
					f.nodes[1].describe(func(s *idnodev1.GetStatusResponse) { s.LeaderTag = "" })
					go func() { _, _ = c.Identity("broken").Next(ctx) }()
				}
				select {
				case <-ctx.Done():
				case <-time.After(1200 * time.Millisecond):
				}
				return ctx.Err()
			}, nil)
			if _, err := c.Identity("slow").Next(t.Context()); err != nil {
				t.Error(err)
			}
			for _, r := range f.nodes[1].requests() {
				if r.(*idnodev1.NextIdentityRequest).GetName() == "slow" {
					t.Error("the call went to another node")
				}
			}
		})
	}
}

// TestManyCallersShareMessages and each gets its own answer.
func TestManyCallersShareMessages(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	const callers, each = 64, 20
	wantCounted(t, together(t, callers, each, func() (int64, error) { return c.Identity("orders").Next(t.Context()) }))
	f.nodes[0].nmu.Lock()
	defer f.nodes[0].nmu.Unlock()
	if m := f.nodes[0].messages; m >= callers*each {
		t.Errorf("%d messages for %d calls", m, callers*each)
	}
}

// TestNodeEndsUnderCalls breaks all streams while calls are in flight: each
// counts once.
func TestNodeEndsUnderCalls(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 2)
		reached := make(chan struct{}, 8)
		f.nodes[0].hook(nil, func(ctx context.Context, r proto.Message) error {
			reached <- struct{}{}
			return hang(ctx, r)
		})
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		var wg sync.WaitGroup
		for range cap(reached) {
			wg.Go(func() {
				if v, err := c.Identity("orders").Next(t.Context()); err != nil || v > int64(cap(reached)) {
					t.Error(v, err)
				}
			})
		}
		arrive := cap(reached)
		if !cfg.Unshared {
			arrive = 2 // The others wait to share the next call.
		}
		for range arrive {
			<-reached
		}
		f.lead("B")
		f.nodes[0].server.Stop()
		wg.Wait()
		if v, err := c.Identity("orders").Get(t.Context()); err != nil || v != int64(cap(reached)) {
			t.Errorf("after %d calls the value is %d: %v", cap(reached), v, err)
		}
	})
}

func TestCallsOfEveryKind(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		cfg.Endpoints = f.addrs()
		c, ctx := connect(t, cfg), t.Context()
		ids, err := c.NextN(ctx, "orders|", 3)
		if diff := cmp.Diff([]string{"orders/1", "orders/2", "orders/3"}, ids); diff != "" || err != nil {
			t.Error(diff, err)
		}
		ids, err = c.NextN(ctx, "users/", 2)
		if diff := cmp.Diff([]string{"users/0000000000000000001-A", "users/0000000000000000002-A"}, ids); diff != "" || err != nil {
			t.Error(diff, err)
		}
		blocks, err := c.NextBlocks(ctx, "orders|", 100)
		if diff := cmp.Diff([]client.IDBlock{{Prefix: "orders/", First: 4, Last: 103}}, blocks); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if id, err := c.NextUUID7(ctx); err != nil || id != "019f0c2d-0000-7000-8000-000000000000" {
			t.Error(id, err)
		}
		if id, err := c.Next(ctx, "users/ayende", client.WithClaim()); err != nil || id != "users/ayende" {
			t.Error(id, err)
		}
		if err := c.Claim(ctx, "users/ayende"); !errors.Is(err, client.ErrIDClaimed) {
			t.Error(err)
		}
		if _, err := c.Identity("nobody").Get(ctx); !errors.Is(err, client.ErrNotFound) {
			t.Error(err)
		}
		var names int
		for i, err := range c.Identities(ctx, "") {
			if err != nil || i.Value != int64(names) {
				t.Fatal(i, err)
			}
			names++
		}
		if names != 2500 {
			t.Errorf("%d names", names)
		}
	})
}

// TestWrongRequestsStayHere because they would be refused anyway.
func TestWrongRequestsStayHere(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	for _, call := range []func() error{
		func() error { _, err := c.Next(t.Context(), `a\b`); return err },
		func() error { _, err := c.Next(t.Context(), "a|", client.WithSeparator("|")); return err },
		func() error { _, err := c.NextN(t.Context(), "a|", 0); return err },
		func() error { _, err := c.Next(t.Context(), "/a"); return err },
		func() error { return c.Claim(t.Context(), "/a") },
		func() error { _, err := c.Identity("a").NextN(t.Context(), -1); return err },
		func() error { _, err := c.NextHiLoID(t.Context(), "a|"); return err },
		func() error { _, err := c.NextHiLoID(t.Context(), "a", client.WithSeparator("|")); return err },
		func() error { _, err := c.NextHiLoID(t.Context(), "a", client.WithFirstSize(-1)); return err },
	} {
		if err := call(); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
	if n := len(f.nodes[0].requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestAfterClose(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	g := c.HiLo("users")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Next(t.Context(), "")
	_, err2 := c.NextHiLoID(t.Context(), "users")
	_, err3 := g.NextID(t.Context())
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []client.Config{
		{Endpoints: []string{"a:1"}, Database: "a/b"},
		{Endpoints: []string{"a:1"}, Timeout: -1},
	} {
		if _, err := client.New(t.Context(), cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// TestWhatCannotBeSentIsRefused at once, with nothing sent and no unknown outcome. In a message
// with other calls it would end their stream.
func TestWhatCannotBeSentIsRefused(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		for name, bad := range map[string]string{"no UTF-8": "a\xff", "too large": strings.Repeat("a", 5<<20)} {
			ctx, id := t.Context(), client.WithRequestID(bad)
			_, err1 := c.Identity(bad).Next(ctx)
			_, err2 := c.Identity("orders").Next(ctx, id)
			_, err3 := c.Identity("orders").Next(ctx, client.WithSeparator(bad))
			_, err4 := c.Identity("orders").Next(ctx, client.WithDatabase(bad))
			_, err5 := c.Identity(bad).Seed(ctx, 1)
			_, err6 := c.NextRange(ctx, bad, client.RangeRequest{})
			_, err7 := c.ReturnRange(ctx, bad, client.Range{Low: 1, High: 32}, 1)
			err8, err9 := c.Claim(ctx, bad), c.Release(ctx, bad)
			_, err10 := c.NextN(ctx, bad, 1)
			_, err11 := c.Identity(bad).Get(ctx)
			_, err12 := c.Series("invoices").Take(ctx, client.NumberRequest{Keys: []string{bad}})
			for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12} {
				if !errors.Is(err, client.ErrInvalid) || errors.Is(err, client.ErrOutcomeUnknown) {
					t.Errorf("%s, %d: %.200v", name, i+1, err)
				}
			}
		}
		if len(f.nodes[0].requests()) > 0 {
			t.Error("something was sent")
		}
	})
}
