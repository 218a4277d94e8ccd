package harness

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// lateStream answers when the time of the call has ended.
type lateStream struct {
	grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]
	ended chan struct{}
}

func (s *lateStream) Send(*idnodev1.ExchangeRequest) error { return nil }

func (s *lateStream) Recv() (*idnodev1.ExchangeResponse, error) {
	<-s.ended
	return &idnodev1.ExchangeResponse{Replies: []*idnodev1.Reply{{
		Correlation: 1, Reply: &idnodev1.Reply_SeedIdentity{SeedIdentity: &idnodev1.SeedIdentityResponse{Value: 5}},
	}}}, nil
}

// TestStreamDoorOfALateAnswer: the answer counts, and the next call, whose time has not ended, gets another stream.
func TestStreamDoorOfALateAnswer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	d := &streamDoor{stream: &lateStream{ended: ended}, cancel: sync.OnceFunc(func() { close(ended) })}
	end()
	op := history.Op{Kind: history.Seed, Name: "invoices"}
	if err := d.do(ctx, &op, nil); err != nil || op.Result != 5 {
		t.Fatalf("the answer is %d, %v, want 5", op.Result, err)
	}
	if d.stream != nil {
		t.Error("a stream that was cancelled is kept for the next call")
	}
}
