package client

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// maxUnderWay bounds the calls of a stream that were sent and not answered: half of a
	// node's bound. Other calls wait here, where they can be given up.
	maxUnderWay = 2048
	// maxCallsBytes bounds a message of calls, far below a node's bound.
	maxCallsBytes = 1 << 20
)

type exchangeStream = grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]

// lane carries calls to one node over one Exchange stream, which is opened for the first call
// and again after it broke. It is safe for concurrent use.
type lane struct {
	// open opens a stream; run runs a goroutine that the Client waits for.
	open func(ctx context.Context) (exchangeStream, error)
	run  func(func()) error
	// life ends all streams.
	life context.Context

	mu   sync.Mutex
	flow *flow
}

// exchange makes one call. Concurrent calls share a message.
func (l *lane) exchange(ctx context.Context, call *idnodev1.Call) (*idnodev1.Reply, error) {
	f, err := l.current()
	if err != nil {
		return nil, err
	}
	w := f.add(call)
	select {
	case <-w.done:
	case <-ctx.Done():
		switch {
		case f.drop(w):
			return nil, unreachable("the node", ctx.Err())
		case !closed(w.done): // A reply that has arrived counts, even if late.
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return w.reply, w.failure()
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// current returns the stream, or a new stream if the last one broke.
func (l *lane) current() (*flow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow != nil && !l.flow.broken() {
		return l.flow, nil
	}
	ctx, cancel := context.WithCancel(l.life)
	stream, err := l.open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	f := &flow{stream: stream, cancel: cancel, wake: make(chan struct{}, 1), waiting: make(map[uint64]*waiting)}
	if err := l.run(f.work); err != nil {
		cancel()
		return nil, err
	}
	l.flow = f
	return f, nil
}

// callOf returns req as a call of an Exchange; nil if the method is not one of Exchange's.
// left is the caller's remaining time, above 0; usual is the time of a try.
func callOf(left, usual time.Duration, req any) *idnodev1.Call {
	call := &idnodev1.Call{}
	switch r := req.(type) {
	case *idnodev1.GenerateRequest:
		call.Call = &idnodev1.Call_Generate{Generate: r}
	case *idnodev1.NextIdentityRequest:
		call.Call = &idnodev1.Call_NextIdentity{NextIdentity: r}
	case *idnodev1.SeedIdentityRequest:
		call.Call = &idnodev1.Call_SeedIdentity{SeedIdentity: r}
	case *idnodev1.NextRangeRequest:
		call.Call = &idnodev1.Call_NextRange{NextRange: r}
	case *idnodev1.ReturnRangeRequest:
		call.Call = &idnodev1.Call_ReturnRange{ReturnRange: r}
	case *idnodev1.ClaimRequest:
		call.Call = &idnodev1.Call_Claim{Claim: r}
	case *idnodev1.ReleaseRequest:
		call.Call = &idnodev1.Call_Release{Release: r}
	default:
		return nil
	}
	// A node has its own bound; the call sets one only if the caller's is shorter.
	if left < usual/2 {
		call.Timeout = durationpb.New(left)
	}
	return call
}

// answerOf returns the answer in a reply.
func answerOf(reply *idnodev1.Reply) any {
	switch r := reply.GetReply().(type) {
	case *idnodev1.Reply_Generate:
		return r.Generate
	case *idnodev1.Reply_NextIdentity:
		return r.NextIdentity
	case *idnodev1.Reply_SeedIdentity:
		return r.SeedIdentity
	case *idnodev1.Reply_NextRange:
		return r.NextRange
	case *idnodev1.Reply_ReturnRange:
		return r.ReturnRange
	case *idnodev1.Reply_Claim:
		return r.Claim
	case *idnodev1.Reply_Release:
		return r.Release
	default:
		return nil
	}
}
