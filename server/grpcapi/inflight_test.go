package grpcapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/idnode/idnode/server/budget"
)

// countedAddr is the other end of a connection that is counted.
type countedAddr struct {
	net.Addr
	held *budget.Connection
}

func (a countedAddr) Budget() *budget.Connection { return a.held }

// streamOf is a stream with nothing but a context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamOf) Context() context.Context { return s.ctx }

// TestEveryMethodAsksForAPlace among the calls in flight of its caller, before its handler
// has it; also reflection, and what operators ask. Health alone does not, and other callers
// have places of their own.
func TestEveryMethodAsksForAPlace(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 1 << 20, Connections: 1, Calls: 4})
	of := func(name string) context.Context {
		return peer.NewContext(t.Context(), &peer.Peer{Addr: countedAddr{held: b.Open(name)}})
	}
	shop, books := of("shop"), of("books")
	for connectionOf(shop).Begin() {
	}
	cfg := Config{Logger: slog.New(slog.DiscardHandler), Observer: quiet{}}
	server := NewServer(cfg, nil, newService(t, newBackend(t)), NewHealth(func() error { return nil }))
	defer server.Stop()
	errHandled := status.Error(codes.Aborted, "handled")
	call := func(ctx context.Context, method string, m grpc.MethodInfo) error {
		if m.IsClientStream || m.IsServerStream {
			return server.log.countedStream(nil, streamOf{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method},
				func(any, grpc.ServerStream) error { return errHandled })
		}
		_, err := server.log.countedUnary(ctx, &emptypb.Empty{}, &grpc.UnaryServerInfo{FullMethod: method},
			func(context.Context, any) (any, error) { return nil, errHandled })
		return err
	}
	methods, ofReflection := 0, 0
	for name, s := range server.GetServiceInfo() {
		for _, m := range s.Methods {
			method := "/" + name + "/" + m.Name
			err, health := call(shop, method, m), strings.HasPrefix(name, "grpc.health")
			if health != errors.Is(err, errHandled) || !health && status.Code(err) != codes.ResourceExhausted {
				t.Errorf("%s: %v", method, err)
			}
			if err := call(books, method, m); !errors.Is(err, errHandled) {
				t.Errorf("%s of another caller: %v", method, err)
			}
			methods++
			if strings.HasPrefix(name, "grpc.reflection") {
				ofReflection++
			}
		}
	}
	if methods < 40 || ofReflection == 0 {
		t.Errorf("%d methods, %d of reflection", methods, ofReflection)
	}
}
