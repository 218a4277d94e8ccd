package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
)

// TestRandomFailures has every third try fail, before or after it took effect,
// while the leader moves about: each call counts once all the same.
func TestRandomFailures(t *testing.T) {
	t.Parallel()
	failures := []error{
		failure(codes.Unavailable, "NO_QUORUM", ""), failure(codes.Unavailable, "STOPPING", ""),
		failure(codes.Unavailable, "OUTCOME_UNKNOWN", ""), status.Error(codes.Unavailable, "connection lost"),
		failure(codes.Internal, "INTERNAL", ""),
	}
	before := func(context.Context, proto.Message) error {
		if rand.N(6) > 0 {
			return nil
		}
		return failures[rand.N(2)]
	}
	after := func(context.Context, proto.Message) error {
		if rand.N(6) > 0 {
			return nil
		}
		return failures[2+rand.N(3)]
	}
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 3)
		for _, n := range f.nodes {
			n.hook(before, after)
		}
		cfg.Endpoints, cfg.Timeout = f.addrs(), 30*time.Second
		c := connect(t, cfg)
		wantCounted(t, together(t, 16, 15, func() (int64, error) {
			defer func() { f.lead(f.nodes[rand.N(3)].tag) }()
			return c.Identity("orders").Next(t.Context())
		}))
	})
}

// BenchmarkNext is one identity a call at a node in this process, by callers at
// the same time.
func BenchmarkNext(b *testing.B) {
	for _, unshared := range []bool{true, false} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("unshared=%t/callers=%d", unshared, callers), func(b *testing.B) {
				f := newCluster(b, 1)
				c := connect(b, client.Config{Endpoints: f.addrs(), Unshared: unshared})
				b.ReportAllocs()
				b.SetParallelism(callers)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := c.Identity("orders").Next(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

// BenchmarkIDFor is an id by type, of which most need no call.
func BenchmarkIDFor(b *testing.B) {
	f := newCluster(b, 1)
	c := connect(b, client.Config{Endpoints: f.addrs()})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.IDFor[Order](b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
