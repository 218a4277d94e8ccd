package grpcapi

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestExchangeBatches: the next identities of a message are proposed in one batch; each is
// answered for itself, and calls that could be answered sooner are made alone.
func TestExchangeBatches(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream := r.exchange(t)
	hurried := nextIdentity(5, "a")
	hurried.Timeout = durationpb.New(time.Minute)
	calls := []*idnodev1.Call{nextIdentity(1, "b"), nextIdentity(2, "bad\\"), nextIdentity(3, "b"), guid(4), hurried}
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	values := map[uint64]int64{}
	for _, reply := range receive(t, stream, len(calls)) {
		if reply.GetCorrelation() == 2 {
			wantStatus(t, replyError(reply), codes.InvalidArgument, "INVALID_NAME", "name")
			continue
		}
		if blocks := reply.GetNextIdentity().GetBlocks(); len(blocks) == 1 {
			values[reply.GetCorrelation()] = blocks[0].GetFirst()
		}
	}
	if diff := cmp.Diff(map[uint64]int64{1: 1, 3: 2, 5: 1}, values); diff != "" {
		t.Error(diff)
	}
	r.set(func(b *backend) {
		if diff := cmp.Diff([]int{2}, b.batches); diff != "" {
			t.Errorf("batches: %s", diff)
		}
	})
}

// TestExchangeSpans: each call that names a span has one of its own, also in a batch; a call
// that names none has none.
func TestExchangeSpans(t *testing.T) {
	var mu sync.Mutex
	ended := map[string]codes.Code{}
	r := serve(t, Config{StartSpan: func(ctx context.Context, method, parent string) (context.Context, func(error)) {
		return ctx, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			ended[method+" of "+parent] = status.Code(err)
		}
	}}, nil)
	stream := r.exchange(t)
	calls := []*idnodev1.Call{nextIdentity(1, "b"), nextIdentity(2, "bad\\"), nextIdentity(3, "b"), guid(4), guid(5)}
	for i, parent := range []string{"", "one", "two", "three"} {
		calls[i].Traceparent = parent
	}
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	receive(t, stream, len(calls))
	mu.Lock()
	defer mu.Unlock()
	const next, generate = idnodev1.IdsService_NextIdentity_FullMethodName, idnodev1.IdsService_Generate_FullMethodName
	want := map[string]codes.Code{next + " of one": codes.InvalidArgument, next + " of two": codes.OK, generate + " of three": codes.OK}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Error(diff)
	}
}
