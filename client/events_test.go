package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// events collects those of a client.
type events struct {
	mu   sync.Mutex
	list []client.Event
}

func (e *events) add(one client.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, one)
}

func (e *events) of(kind client.EventKind) []client.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.list), func(one client.Event) bool { return one.Kind != kind })
}

// TestEvents: a call that is repeated at another node, the looks for the leader, and a handle's
// numbers that come back too late.
func TestEvents(t *testing.T) {
	f := newCluster(t, 2)
	var seen events
	var log bytes.Buffer
	c := connect(t, client.Config{
		Endpoints: f.addrs(), Observe: seen.add, Logger: slog.New(slog.NewTextHandler(&log, nil)), Unshared: true,
	})
	f.nodes[0].hook(always(failure(codes.Unavailable, "NO_QUORUM", "")), nil)
	if _, err := c.Identity("secret").Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	tries := seen.of(client.EventTry)
	if len(tries) != 2 || tries[0].Node != f.nodes[0].addr || tries[0].Attempt != 1 || !errors.Is(tries[0].Err, client.ErrNoQuorum) ||
		tries[1].Node != f.nodes[1].addr || tries[1].Attempt != 2 || tries[1].Err != nil || tries[1].Duration <= 0 {
		t.Errorf("tries: %+v", tries)
	}
	if looks := seen.of(client.EventLook); len(looks) == 0 || looks[0].Node != f.nodes[0].addr || looks[0].Duration <= 0 {
		t.Errorf("looks: %+v", looks)
	}
	if leaders := seen.of(client.EventLeader); len(leaders) == 0 || leaders[0].Node != f.nodes[0].addr {
		t.Errorf("leaders: %+v", leaders)
	}
	f.nodes[0].hook(nil, nil)
	if _, err := c.NextHiLoID(t.Context(), "users"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NextRange(t.Context(), "users", client.RangeRequest{Size: 10}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if gaps := seen.of(client.EventGap); len(gaps) != 1 {
		t.Errorf("gaps: %+v", gaps)
	}
	for _, want := range []string{"a call is repeated", "attempt=1", "calls go to another leader", "came back too late", "tag=users"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("a request is in the log:\n%s", &log)
	}
}

// TestDialOptions: an application's interceptor sees the calls, its options do not replace the
// client's own, and nodes see the client's version.
func TestDialOptions(t *testing.T) {
	f := newCluster(t, 1)
	agents := make(chan []string, 1)
	f.nodes[0].hook(func(ctx context.Context, _ proto.Message) error {
		agents <- metadata.ValueFromIncomingContext(ctx, "user-agent")
		return nil
	}, nil)
	var methods []string
	c := connect(t, client.Config{Endpoints: f.addrs(), Unshared: true, DialOptions: []grpc.DialOption{
		grpc.WithMaxHeaderListSize(1 << 20), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			if method == idnodev1.IdsService_Claim_FullMethodName {
				methods = append(methods, method)
			}
			return invoke(ctx, method, req, reply, conn, opts...)
		}),
	}})
	if err := c.Claim(t.Context(), "mine"); err != nil || len(methods) != 1 {
		t.Error(methods, err)
	}
	if agent := <-agents; len(agent) != 1 || !strings.HasPrefix(agent[0], "idnode-go/") {
		t.Errorf("user agent %q", agent)
	}
}
