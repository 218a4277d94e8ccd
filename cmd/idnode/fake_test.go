package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// fakeNode is a server whose answers a test writes down beforehand. It answers
// every method of the API: by handle, or with the zero answer.
type fakeNode struct {
	idnodev1.UnimplementedIdsServiceServer
	idnodev1.UnimplementedClusterServiceServer
	idnodev1.UnimplementedSeriesServiceServer
	idnodev1.UnimplementedAdminServiceServer
	idnodev1.UnimplementedSnowflakeServiceServer
	healthpb.UnimplementedHealthServer

	addr string
	// applied is the index that GetStatus reports.
	applied uint64
	// cluster is the id that GetStatus reports, members how many there are.
	cluster string
	members int
	// handle answers a call; it may return nil, nil for the zero answer.
	handle func(req proto.Message) (proto.Message, error)

	mu    sync.Mutex
	calls []proto.Message
	// unnamed counts the calls that named no cluster.
	unnamed int
}

// newFakeNode starts a node on loopback that ends with the test.
func newFakeNode(t *testing.T, handle func(req proto.Message) (proto.Message, error), opts ...grpc.ServerOption) *fakeNode {
	t.Helper()
	n := &fakeNode{handle: handle}
	srv := grpc.NewServer(append(opts, grpc.UnaryInterceptor(n.intercept))...)
	idnodev1.RegisterIdsServiceServer(srv, n)
	idnodev1.RegisterClusterServiceServer(srv, n)
	idnodev1.RegisterSeriesServiceServer(srv, n)
	idnodev1.RegisterAdminServiceServer(srv, n)
	idnodev1.RegisterSnowflakeServiceServer(srv, n)
	healthpb.RegisterHealthServer(srv, n)
	n.addr = serveGRPC(t, srv)
	return n
}

// serveGRPC serves on loopback until the test ends, and returns the address.
func serveGRPC(t *testing.T, srv *grpc.Server) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis) // It ends with Stop.
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return lis.Addr().String()
}

// intercept answers every call, so that the methods need not be written out.
func (n *fakeNode) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	msg := req.(proto.Message)
	named := metadata.ValueFromIncomingContext(ctx, "idnode-cluster-id")
	if _, ok := msg.(*idnodev1.GetStatusRequest); ok && (n.applied > 0 || n.cluster != "") {
		return &idnodev1.GetStatusResponse{AppliedIndex: n.applied, ClusterId: n.cluster, Members: make([]*idnodev1.Member, n.members)}, nil
	}
	if len(named) > 0 && named[0] != n.cluster {
		return nil, otherCluster("the node belongs to cluster %s", n.cluster)
	}
	n.mu.Lock()
	n.calls = append(n.calls, proto.Clone(msg))
	if len(named) == 0 {
		n.unnamed++
	}
	n.mu.Unlock()
	res, err := n.handle(msg)
	if res == nil && err == nil {
		return next(ctx, req)
	}
	return res, err
}

// requests returns the calls received, but for those of GetStatus if the node
// answers it by itself.
func (n *fakeNode) requests() []proto.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]proto.Message(nil), n.calls...)
}

// answer makes a handler that always gives the same answer.
func answer(res proto.Message) func(proto.Message) (proto.Message, error) {
	return func(proto.Message) (proto.Message, error) { return res, nil }
}

// refuse makes a handler that always fails.
func refuse(err error) func(proto.Message) (proto.Message, error) {
	return func(proto.Message) (proto.Message, error) { return nil, err }
}

// failure returns an error as an idnode server sends it; without a reason, as
// gRPC itself does.
func failure(t *testing.T, code codes.Code, reason, message string, fields ...string) error {
	t.Helper()
	s := status.New(code, message)
	if reason == "" {
		return s.Err()
	}
	s, err := s.WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		s, err = s.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: f}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s.Err()
}

// outcome is what a command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs one command line without any environment.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandEnv(t, nil, args...)
}

func commandEnv(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}
