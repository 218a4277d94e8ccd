package grpcapi

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestCompressedMessagesAreRefused: gzip is there because an exporter of traces imports
// it, and a few bytes of it may stand for many. A compressed message is refused before
// it is decompressed, and before anything judges or serves the call, on every service.
func TestCompressedMessagesAreRefused(t *testing.T) {
	var served atomic.Int32
	const limit = 64 << 10
	r := serve(t, Config{Options: []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limit),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			served.Add(1)
			return handler(ctx, req)
		}),
	}}, nil)
	zip := grpc.UseCompressor(gzip.Name)
	// What it stands for is larger than a message may be.
	bomb := strings.Repeat("0", 2*limit)
	stream := func(call *idnodev1.ExchangeRequest) error {
		s, err := r.ids.Exchange(bounded(t), zip)
		if err != nil {
			return err
		}
		if err := s.Send(call); err != nil {
			return err
		}
		_, err = s.Recv()
		return err
	}
	for name, call := range map[string]func() error{
		"a small call": func() error {
			_, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{Name: "orders", Count: 1}, zip)
			return err
		},
		"a call that would grow": func() error {
			_, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{Name: bomb, Count: 1}, zip)
			return err
		},
		"a stream": func() error {
			return stream(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{{Correlation: 1, Call: &idnodev1.Call_NextIdentity{
				NextIdentity: &idnodev1.NextIdentityRequest{Name: "orders", Count: 1},
			}}}})
		},
		"a call of another service": func() error {
			_, err := r.cluster.ListMembers(bounded(t), &idnodev1.ListMembersRequest{PageSize: 1}, zip)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.Index()
			err := call()
			if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "compressed messages are refused") {
				t.Errorf("error %v", err)
			}
			if served.Load() != 0 || r.Index() != before {
				t.Error("the call was served")
			}
		})
	}
	if _, err := r.ids.NextIdentity(bounded(t), &idnodev1.NextIdentityRequest{Name: "orders", Count: 1}); err != nil {
		t.Errorf("a plain call on the same connection: %v", err)
	}
}
