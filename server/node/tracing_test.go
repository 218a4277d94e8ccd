package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/tracing"
	"github.com/idnode/idnode/test/tracetest"
)

// The trace of this test's calls.
const (
	callersTrace = "0102030405060708090a0b0c0d0e0f10"
	traceparent  = "00-" + callersTrace + "-0102030405060708-01"
)

// TestTraces follows calls at a follower, of a caller that follows them too: from
// the server's port into the group, and on to the log entry on the leader.
func TestTraces(t *testing.T) {
	c := &tracetest.Collector{}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Serve(t))
	nodes := map[string]*running{}
	for tag, cfg := range configs(t, "A", "B", "C") {
		traces, err := tracing.Start(t.Context(), tracing.Config{Instance: tag, Getenv: os.Getenv})
		if err != nil {
			t.Fatal(err)
		}
		nodes[tag] = runWith(t, Options{Config: cfg, Tracing: traces})
	}
	for _, n := range nodes {
		n.ready()
	}
	leader := nodes["A"].cluster.Status().LeaderTag
	follower := "A"
	if leader == follower {
		follower = "B"
	}
	nextIdentity(t, nodes[follower].GRPCAddr())
	exchange(t, nodes[follower].GRPCAddr())
	clientCalls(t, nodes[follower].GRPCAddr())
	nodes[follower].nextRange(t)
	for _, n := range nodes {
		n.stop()
	}
	spans := slices.DeleteFunc(c.Spans(), func(s tracetest.Span) bool { return !ofCaller(s) })
	theClients(t, spans)
	spans = slices.DeleteFunc(spans, func(s tracetest.Span) bool { return bytes.Equal(s.GetTraceId(), clientsTrace) })
	const call = "idnode.v1.IdsService/NextIdentity"
	for name, on := range map[string]string{call: follower, "GET /databases/{db}/hilo/next": follower} {
		server := only(t, spans, name, nil)
		propose := only(t, spans, "propose", server.GetSpanId())
		group := only(t, spans, "group", propose.GetSpanId())
		entry := only(t, spans, "log entry", group.GetSpanId())
		for what, got := range map[string]string{"server": server.Instance, "propose": propose.Instance, "group": group.Instance} {
			if got != on {
				t.Errorf("%s: the %s span is of %s, want %s", name, what, got, on)
			}
		}
		if entry.Instance != leader {
			t.Errorf("%s: the log entry was written by %s, want %s", name, entry.Instance, leader)
		}
	}
	// A stream has no span of its own: the proposals of its calls follow the caller's span.
	callers := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	only(t, spans, "log entry", only(t, spans, "group", only(t, spans, "propose", callers).GetSpanId()).GetSpanId())
	if len(spans) != 11 {
		t.Errorf("%d spans: %v", len(spans), spans)
	}
}

// clientsTrace is the trace of the client's calls.
var clientsTrace = bytes.Repeat([]byte{7}, 16)

// span is the span that a context of the client's calls has.
type span struct{}

// clientCalls makes calls with the Go client, each of a span of its own: three that an Exchange
// carries, of which the last is refused, and one that is unary.
func clientCalls(t *testing.T, address string) {
	t.Helper()
	parent := func(ctx context.Context) string {
		return fmt.Sprintf("00-%x-%016x-01", clientsTrace, ctx.Value(span{}))
	}
	c, err := client.New(t.Context(), client.Config{Endpoints: []string{address}, TraceParent: parent})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	in := func(id int) context.Context { return context.WithValue(t.Context(), span{}, id) }
	_, err1 := c.Identity("orders").Next(in(1))
	err2 := c.Claim(in(2), "orders/mine")
	err3 := c.Claim(in(3), "orders/mine")
	_, err4 := c.Identity("orders").Get(in(4))
	if err := errors.Join(err1, err2, err4); err != nil || !errors.Is(err3, client.ErrIDClaimed) {
		t.Fatal(err, err3)
	}
}

// theClients checks that each of them is a child of its caller's span.
func theClients(t *testing.T, spans []tracetest.Span) {
	t.Helper()
	for id, name := range map[byte]string{1: "NextIdentity", 2: "Claim", 3: "Claim", 4: "GetIdentity"} {
		server := only(t, spans, "idnode.v1.IdsService/"+name, append(make([]byte, 7), id))
		if !bytes.Equal(server.GetTraceId(), clientsTrace) {
			t.Errorf("%s of span %d: %v", name, id, server)
		}
		if id <= 2 {
			only(t, spans, "group", only(t, spans, "propose", server.GetSpanId()).GetSpanId())
		}
	}
}

func ofCaller(s tracetest.Span) bool {
	own := bytes.Equal(s.GetTraceId(), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	return own || bytes.Equal(s.GetTraceId(), clientsTrace)
}

// only returns the span of this name below a parent, whichever that is if nil.
func only(t *testing.T, spans []tracetest.Span, name string, parent []byte) tracetest.Span {
	t.Helper()
	var found []tracetest.Span
	for _, s := range spans {
		if s.GetName() == name && (parent == nil || bytes.Equal(s.GetParentSpanId(), parent)) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q below %x: %v", len(found), name, parent, spans)
	}
	return found[0]
}

// nextIdentity takes a value over gRPC.
func nextIdentity(t *testing.T, address string) {
	t.Helper()
	ctx, ids := followedCaller(t, address)
	if _, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "invoices"}); err != nil {
		t.Fatal(err)
	}
}

// exchange takes two values in one message of an Exchange.
func exchange(t *testing.T, address string) {
	t.Helper()
	ctx, ids := followedCaller(t, address)
	stream, err := ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	request := &idnodev1.ExchangeRequest{}
	for i := range uint64(2) {
		request.Calls = append(request.Calls, &idnodev1.Call{Correlation: i, Call: &idnodev1.Call_NextIdentity{
			NextIdentity: &idnodev1.NextIdentityRequest{Name: "invoices"},
		}})
	}
	if err := errors.Join(stream.Send(request), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for replies := 0; ; {
		response, err := stream.Recv()
		if replies += len(response.GetReplies()); errors.Is(err, io.EOF) && replies == 2 {
			return
		} else if err != nil {
			t.Fatalf("%d replies: %v", replies, err)
		}
	}
}

// followedCaller returns a caller over gRPC who is being followed.
func followedCaller(t *testing.T, address string) (context.Context, idnodev1.IdsServiceClient) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	return metadata.AppendToOutgoingContext(ctx, "traceparent", traceparent), idnodev1.NewIdsServiceClient(conn)
}

// nextRange takes a range over HTTP.
func (r *running) nextRange(t *testing.T) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.url+"/databases/default/hilo/next?tag=orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", traceparent)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
}
