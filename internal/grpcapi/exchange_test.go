package grpcapi

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// exchangeClient is a caller's end of an Exchange stream.
type exchangeClient = grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]

// exchange opens a stream that ends with the test.
func (r *rig) exchange(t testing.TB) exchangeClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := r.ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func nextIdentity(correlation uint64, name string) *idnodev1.Call {
	return &idnodev1.Call{Correlation: correlation, Call: &idnodev1.Call_NextIdentity{
		NextIdentity: &idnodev1.NextIdentityRequest{Name: name},
	}}
}

// receive reads messages until there are n replies.
func receive(t testing.TB, stream exchangeClient, n int) []*idnodev1.Reply {
	t.Helper()
	var replies []*idnodev1.Reply
	for len(replies) < n {
		res, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, res.GetReplies()...)
	}
	return replies
}
