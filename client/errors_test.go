package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client"
)

// TestEveryErrorIsAnError: errors.As finds an Error with a reason in whatever fails.
func TestEveryErrorIsAnError(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	closed := connect(t, client.Config{Endpoints: f.addrs()})
	handle := closed.HiLo("users")
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	value := func(ctx context.Context) error { _, err := c.Identity("a").Next(ctx); return err }
	read := func(ctx context.Context) error { _, err := c.Identity("a").Get(ctx); return err }
	guid := func(ctx context.Context) error { _, err := c.Next(ctx, ""); return err }
	number := func(ctx context.Context) error { _, err := c.HiLo("a").Next(ctx); return err }
	ids := func(ctx context.Context) error { _, err := c.HiLo("a").NextIDs(ctx, 2); return err }
	none := func(ctx context.Context) error { _, err := c.HiLo("a").NextIDs(ctx, 0); return err }
	afterClose := func(ctx context.Context) error { _, err := handle.NextID(ctx); return err }
	wrongTag := func(ctx context.Context) error { _, err := c.NextHiLoID(ctx, "a|"); return err }
	document := func(ctx context.Context) error { return c.FillID(ctx, 7) }
	nameless := func(ctx context.Context) error { _, err := client.IDFor[struct{}](ctx, c); return err }
	made := func(endpoints ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := client.New(ctx, client.Config{Endpoints: endpoints})
			return err
		}
	}
	for name, tt := range map[string]struct {
		call   func(ctx context.Context) error
		ctx    context.Context
		reason string
		is     error
	}{
		"identity, canceled":  {value, canceled, "CANCELED", context.Canceled},
		"identity, late":      {value, late, "DEADLINE_EXCEEDED", context.DeadlineExceeded},
		"reading, canceled":   {read, canceled, "CANCELED", context.Canceled},
		"GUID, late":          {guid, late, "DEADLINE_EXCEEDED", client.ErrDeadline},
		"number, canceled":    {number, canceled, "CANCELED", context.Canceled},
		"HiLo ids, late":      {ids, late, "DEADLINE_EXCEEDED", context.DeadlineExceeded},
		"HiLo, no count":      {none, nil, "INVALID_COUNT", client.ErrInvalid},
		"HiLo, closed client": {afterClose, nil, "CLIENT_CLOSED", client.ErrClosed},
		"HiLo, wrong tag":     {wrongTag, nil, "INVALID_TAG", client.ErrInvalid},
		"a document":          {document, nil, "INVALID_DOCUMENT", client.ErrInvalid},
		"a nameless type":     {nameless, nil, "INVALID_DOCUMENT", client.ErrInvalid},
		"no endpoints":        {made(), nil, "INVALID_CONFIG", client.ErrInvalid},
		"a canceled New":      {made(f.addrs()...), canceled, "CANCELED", context.Canceled},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		err := tt.call(ctx)
		var e *client.Error
		if !errors.As(err, &e) || e.Reason != tt.reason || !errors.Is(err, tt.is) || errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(f.nodes[0].requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestAnUnreachableClusterStaysTheReason of a call that waited for it until its deadline.
func TestAnUnreachableClusterStaysTheReason(t *testing.T) {
	c := connect(t, client.Config{Endpoints: []string{unusedAddr(t)}})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := c.Claim(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrNoEndpoint) {
		t.Error(err)
	}
}

// TestRetryAfter is the pause that the node named.
func TestRetryAfter(t *testing.T) {
	for _, reason := range []string{"RATE_LIMITED", "OVERLOADED"} {
		s, err := status.New(codes.ResourceExhausted, "because").WithDetails(
			&errdetails.ErrorInfo{Domain: "idnode", Reason: reason}, &errdetails.RetryInfo{RetryDelay: durationpb.New(30 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		f := newCluster(t, 1)
		f.nodes[0].hook(always(s.Err()), nil)
		c := connect(t, client.Config{Endpoints: f.addrs()})
		var e *client.Error
		if err := c.Claim(t.Context(), "a"); !errors.As(err, &e) || e.Reason != reason || e.RetryAfter != 30*time.Millisecond {
			t.Error(err)
		}
	}
}

// TestOptionsThatDoNotApplyAreRefused, with their names.
func TestOptionsThatDoNotApplyAreRefused(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	ctx, mine := t.Context(), client.RequestID{ID: "mine"}
	for name, call := range map[string]func() error{
		"WithClaim of an identity": func() error { _, err := c.Identity("a", client.WithClaim()).Get(ctx); return err },
		"WithClaim of a series":    func() error { _, err := c.Series("a", client.WithClaim()).Find(ctx, "b"); return err },
		"WithClaim of a document":  func() error { return c.FillID(ctx, new(Order), client.WithClaim()) },
		"WithExpected":             func() error { _, err := c.Next(ctx, "a|", client.WithExpected(1)); return err },
		"WithForce":                func() error { _, err := c.Identity("a").Next(ctx, client.WithForce()); return err },
		"WithForget":               func() error { _, err := c.Identity("a").Seed(ctx, 1, client.WithForget()); return err },
		"WithClaim":                func() error { return c.Claim(ctx, "a", client.WithClaim()) },
		"WithStale":                func() error { _, err := c.NextRange(ctx, "a", client.RangeRequest{}, client.WithStale()); return err },
		"WithFirstSize":            func() error { _, err := c.NextN(ctx, "a|", 2, client.WithFirstSize(1)); return err },
		"WithRequestID":            func() error { _, err := c.Next(ctx, "a/", client.WithRequestID("mine")); return err },
		"WithRetryOf":              func() error { _, err := c.NextHiLoID(ctx, "a", client.WithRetryOf(mine)); return err },
		"WithSeparator":            func() error { _, err := c.Identity("a").Get(ctx, client.WithSeparator("#")); return err },
	} {
		var e *client.Error
		if err := call(); !errors.As(err, &e) || e.Reason != "INVALID_OPTION" || !strings.Contains(e.Message, strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(f.nodes[0].requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestAnEmptyRequestIDIsRefused: the call would count each time.
func TestAnEmptyRequestIDIsRefused(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	ctx, i := t.Context(), c.Identity("a")
	for name, empty := range map[string]client.Option{
		"WithRequestID": client.WithRequestID(""),
		"WithRetryOf":   client.WithRetryOf(client.RequestID{Since: 7}),
	} {
		for call, make := range map[string]func() error{
			"Next":          func() error { _, err := c.Next(ctx, "a|", empty); return err },
			"Claim":         func() error { return c.Claim(ctx, "a", empty) },
			"Release":       func() error { return c.Release(ctx, "a", empty) },
			"NextRange":     func() error { _, err := c.NextRange(ctx, "a", client.RangeRequest{}, empty); return err },
			"Identity.Next": func() error { _, err := i.Next(ctx, empty); return err },
			"NextN":         func() error { _, err := i.NextN(ctx, 2, empty); return err },
			"Seed":          func() error { _, err := i.Seed(ctx, 7, empty); return err },
			"Delete":        func() error { _, err := i.Delete(ctx, empty); return err },
		} {
			var e *client.Error
			if err := make(); !errors.As(err, &e) || e.Reason != "INVALID_REQUEST_ID" || e.Field != "request_id" {
				t.Errorf("%s of %s: %v", name, call, err)
			}
		}
	}
	if n := len(f.nodes[0].requests()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestAHandleIsClosedAlone: the client makes another one for the tag, also for a type, which
// goes on where the closed one ended.
func TestAHandleIsClosedAlone(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	for _, want := range []string{"companies/1-A", "companies/2-A"} {
		if id, err := client.IDFor[Company](t.Context(), c); err != nil || id != want {
			t.Errorf("%s %v, want %s", id, err, want)
		}
		closed := c.HiLo("companies")
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := closed.Next(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
	}
}
