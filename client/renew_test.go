package client_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// busy is how far the log of a cluster comes while a client is not looking.
const busy = 10_000_000

// expired refuses requests that name an index below floor, as a cluster does that has forgotten
// the request ids before.
func expired(floor uint64) func(context.Context, proto.Message) error {
	return func(_ context.Context, r proto.Message) error {
		if id := r.(counted).GetRequestId(); id.RetrySince != nil && id.GetRetrySince() < floor {
			return failure(codes.FailedPrecondition, "REQUEST_ID_EXPIRED", "request_id")
		}
		return nil
	}
}

type counted interface{ GetRequestId() *idnodev1.RequestId }

// newBusyCluster returns a cluster that has forgotten the log index its client knows.
func newBusyCluster(t *testing.T, cfg client.Config) (*fakeCluster, *client.Client) {
	t.Helper()
	f := newCluster(t, 2)
	cfg.Endpoints = f.addrs()
	c := connect(t, cfg)
	if _, err := c.Identity("orders").Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.index = busy
	f.mu.Unlock()
	f.nodes[0].hook(expired(busy), nil)
	client.Age(c, time.Second)
	return f, c
}

// wantRenewed checks that the second call was sent twice to the leader under one id.
func wantRenewed(t *testing.T, f *fakeCluster) {
	t.Helper()
	reqs := f.nodes[0].requests()
	if len(reqs) != 3 {
		t.Fatalf("the leader was asked %d times, want 3", len(reqs))
	}
	first, again := reqs[1].(counted).GetRequestId(), reqs[2].(counted).GetRequestId()
	if first.GetId() != again.GetId() || first.GetRetrySince() >= busy || again.GetRetrySince() != busy {
		t.Errorf("first %v, then %v", first, again)
	}
}

// TestFirstTryBehindASmallWindow: a call of a healthy client is not refused because
// the cluster has forgotten all request ids since the client heard of an index.
func TestFirstTryBehindASmallWindow(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f, c := newBusyCluster(t, cfg)
		wantNext(t, c, 2)
		wantRenewed(t, f)
	})
}

// TestFirstTryWithTheIndexOfACutOffFollower: after an idle time the first to answer
// is a follower that knows nothing new.
func TestFirstTryWithTheIndexOfACutOffFollower(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f, c := newBusyCluster(t, cfg)
		refused := make(chan struct{})
		say := func(n *fakeNode, status func(*idnodev1.GetStatusResponse)) {
			n.nmu.Lock()
			defer n.nmu.Unlock()
			n.status = status
		}
		say(f.nodes[0], func(*idnodev1.GetStatusResponse) { <-refused })
		say(f.nodes[1], func(s *idnodev1.GetStatusResponse) { s.AppliedIndex = 10 })
		check, seen := expired(busy), sync.OnceFunc(func() { close(refused) })
		f.nodes[0].hook(func(ctx context.Context, r proto.Message) error {
			seen()
			return check(ctx, r)
		}, nil)
		client.Age(c, 6*time.Second)
		wantNext(t, c, 2)
		wantRenewed(t, f)
	})
}

// TestRefusedAgainWithTheNewIndex: a call begins again once.
func TestRefusedAgainWithTheNewIndex(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f, c := newBusyCluster(t, cfg)
		f.nodes[0].hook(expired(busy+1), nil)
		if _, err := c.Identity("orders").Next(t.Context()); !errors.Is(err, client.ErrRequestIDExpired) {
			t.Error(err)
		}
		wantRenewed(t, f)
	})
}

// TestExpiredIDThatMayHaveBeenSentBefore is refused: with a new index it might count
// twice.
func TestExpiredIDThatMayHaveBeenSentBefore(t *testing.T) {
	for name, opts := range map[string][]client.Option{
		"caller's id":           {client.WithRequestID("mine")},
		"caller's id and index": {client.WithRetryOf(client.RequestID{ID: "mine", Since: 7})},
		"place in a block":      {client.WithRequestID("00112233445566778899aabbccddeeff.1/2")},
	} {
		t.Run(name, func(t *testing.T) {
			f, c := newBusyCluster(t, client.Config{})
			if _, err := c.Identity("orders").Next(t.Context(), opts...); !errors.Is(err, client.ErrRequestIDExpired) {
				t.Error(err)
			}
			if n := len(f.nodes[0].requests()); n != 2 {
				t.Errorf("the leader was asked %d times, want 2", n)
			}
		})
	}
}

// TestExpiredAfterATryOfUnknownOutcome is refused, and the error says that the try may
// have taken effect.
func TestExpiredAfterATryOfUnknownOutcome(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f, c := newBusyCluster(t, cfg)
		f.nodes[0].hook(nil, always(status.Error(codes.Unavailable, "connection lost")))
		f.nodes[1].hook(expired(busy), nil)
		_, err := c.Identity("orders").Next(t.Context())
		if !errors.Is(err, client.ErrRequestIDExpired) || !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Error(err)
		}
		if n := len(f.nodes[1].requests()); n != 1 {
			t.Errorf("the other node was asked %d times", n)
		}
	})
}

// TestExpiredBlock: callers that share a block take values of their own, under other
// request ids.
func TestExpiredBlock(t *testing.T) {
	f, c := newBusyCluster(t, client.Config{})
	held := make(chan struct{})
	var old atomic.Int64
	f.nodes[0].hook(func(ctx context.Context, r proto.Message) error {
		switch n := r.(*idnodev1.NextIdentityRequest).GetCount(); {
		case n > 1:
			return failure(codes.FailedPrecondition, "REQUEST_ID_EXPIRED", "request_id")
		case old.Add(1) == 1:
			<-held
		}
		return nil
	}, nil)
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			if _, err := c.Identity("orders").Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for client.Waiting(c) < 4 {
		time.Sleep(time.Millisecond)
	}
	close(held)
	calls.Wait()
	f.nodes[0].hook(nil, nil)
	if v, err := c.Identity("orders").Get(t.Context()); err != nil || v != 6 {
		t.Errorf("after 6 calls the value is %d: %v", v, err)
	}
}

// TestARenewedCallThatReachesNoNode: the refusal that it began again for is no answer to
// what it was then.
func TestARenewedCallThatReachesNoNode(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		cfg.Timeout = 500 * time.Millisecond
		f, c := newBusyCluster(t, cfg)
		check := expired(busy)
		for _, n := range f.nodes {
			n.hook(func(ctx context.Context, r proto.Message) error {
				return cmp.Or(check(ctx, r), failure(codes.Unavailable, "NO_ENDPOINT", ""))
			}, nil)
		}
		if _, err := c.Identity("orders").Next(t.Context()); !errors.Is(err, client.ErrNoEndpoint) {
			t.Fatal(err)
		}
	})
}

// TestTheNextRequestIsNoRetry after a try that was not sent, or was refused before anything
// happened: a cluster that has forgotten old request ids refuses a retry that names no index, but
// not a first request. After an outcome that is not known it is one.
func TestTheNextRequestIsNoRetry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		code    codes.Code
		reason  string
		retries bool
	}{
		"not sent":           {},
		"no quorum":          {codes.Unavailable, "NO_QUORUM", false},
		"starting":           {codes.Unavailable, "STARTING", false},
		"stopping":           {codes.Unavailable, "STOPPING", false},
		"no audit log":       {codes.Unavailable, "AUDIT_FAILED", false},
		"overloaded":         {codes.ResourceExhausted, "OVERLOADED", false},
		"slow disk":          {codes.Unavailable, "OVERLOADED", false},
		"not formed":         {codes.FailedPrecondition, "NOT_FORMED", false},
		"no tag":             {codes.FailedPrecondition, "NODE_TAG_NOT_ASSIGNED", false},
		"no member":          {codes.FailedPrecondition, "NOT_A_MEMBER", false},
		"corrupt":            {codes.DataLoss, "CORRUPT", false},
		"not implemented":    {codes.Unimplemented, "", false},
		"unknown":            {codes.Unavailable, "OUTCOME_UNKNOWN", true},
		"a lost connection":  {codes.Unavailable, "", true},
		"a fault":            {codes.Internal, "INTERNAL", true},
		"an ended time":      {codes.DeadlineExceeded, "", true},
		"a fault of gRPC's":  {codes.Internal, "", true},
		"an error of nobody": {codes.Unknown, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, cfg client.Config) {
				f := newCluster(t, 1)
				// No index is known: nodes do not say it.
				f.nodes[0].overloaded = true
				var tries atomic.Int64
				if tt.code != codes.OK {
					f.nodes[0].hook(func(context.Context, proto.Message) error {
						if tries.Add(1) <= 2 {
							return failure(tt.code, tt.reason, "")
						}
						return nil
					}, nil)
				}
				g := openOnly()
				cfg.Endpoints, cfg.ClusterID, cfg.Dial = f.addrs(), f.id, g.dial
				cfg.Observe = func(e client.Event) {
					if e.Kind == client.EventTry && e.Err != nil {
						g.let(f.addrs()...)
					}
				}
				if tt.code != codes.OK {
					g.let(f.addrs()...)
				}
				c := connect(t, cfg)
				if v, err := c.Identity("orders").Next(t.Context(), client.WithRequestID("mine")); err != nil || v != 1 {
					t.Fatal(v, err)
				}
				for i, r := range f.nodes[0].requests() {
					if id := r.(counted).GetRequestId(); (id.RetrySince != nil) != (tt.retries && i > 0) {
						t.Errorf("request %d: %v", i+1, id)
					}
				}
			})
		})
	}
}
