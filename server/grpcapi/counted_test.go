package grpcapi

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestUnreadAnswers: a caller that asks and does not read is refused in the end,
// before anything is given; and when it is gone nothing is held for it.
func TestUnreadAnswers(t *testing.T) {
	large := &idnodev1.GenerateRequest{Template: strings.Repeat("x", 79) + "/", Count: 10_000}
	for name, begin := range map[string]func(context.Context, *rig) error{
		"calls": func(ctx context.Context, r *rig) error {
			stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{}, idnodev1.IdsService_Generate_FullMethodName)
			if err != nil {
				return err
			}
			return stream.SendMsg(large)
		},
		"streams": func(ctx context.Context, r *rig) error {
			stream, err := r.ids.Exchange(ctx)
			if err != nil {
				return err
			}
			return stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{generate(1, large), generate(2, large)}})
		},
		"refusals": func(ctx context.Context, r *rig) error {
			stream, err := r.ids.Exchange(ctx)
			if err != nil {
				return err
			}
			return stream.Send(&idnodev1.ExchangeRequest{Calls: make([]*idnodev1.Call, 3_000)})
		},
		"blocks": func(ctx context.Context, r *rig) error {
			_, err := r.ids.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Template: "users/", BlockSize: 1})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, Config{}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			eventually(t, func() bool {
				if err := begin(ctx, r); err != nil && !errors.Is(err, io.EOF) { // The stream may have been refused already.
					t.Fatal(err)
				}
				_, err := r.ids.Generate(bounded(t), large)
				if err == nil {
					return false
				}
				wantStatus(t, err, codes.ResourceExhausted, "OVERLOADED", "")
				return true
			})
			if held := r.budget.Held(); held > heldBytes*3/4 {
				t.Errorf("%d bytes are held for one who may have %d", held, heldBytes/2)
			}
			cancel()
			eventually(t, func() bool {
				runtime.GC() // gRPC forgets some of them.
				return r.budget.Held() == 0
			})
			if _, err := r.ids.Generate(bounded(t), large); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestASilentStreamHoldsNoMessage: what it has sent is let go of when it was taken up.
func TestASilentStreamHoldsNoMessage(t *testing.T) {
	const streams, bytes = 20, 3 << 20 // Larger than what is kept for later messages.
	r := serve(t, Config{}, nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, large := heap(), guid(1)
	large.GetGenerate().Database = strings.Repeat("x", bytes)
	for range streams {
		if reply := ask(t, r.exchange(t), large); reply.GetError() == nil {
			t.Fatal(reply)
		}
	}
	eventually(t, func() bool { return heap() < before+streams*bytes/3 })
}

// TestOthersHoldAll: health is checked all the same, and operators look at the cluster,
// with no room for anything else.
func TestOthersHoldAll(t *testing.T) {
	r := serve(t, Config{}, nil)
	others := r.budget.Open("others")
	defer others.Close()
	others.Unsent(heldBytes)
	_, err := r.ids.Generate(bounded(t), &idnodev1.GenerateRequest{Template: "users/"})
	wantStatus(t, err, codes.ResourceExhausted, "OVERLOADED", "")
	if _, err := r.cluster.GetStatus(bounded(t), &idnodev1.GetStatusRequest{}); err != nil {
		t.Errorf("the state of the cluster: %v", err)
	}
	if _, err := healthv1.NewHealthClient(r.conn).Check(bounded(t), &healthv1.HealthCheckRequest{Service: LiveService}); err != nil {
		t.Errorf("health: %v", err)
	}
}

// eventually polls until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("that does not come to be")
		}
	}
}
