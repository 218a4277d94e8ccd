package grpcapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
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
