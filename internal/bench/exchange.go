package bench

import (
	"context"
	"errors"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

// exchangeBatch is how many calls one message carries at most.
const exchangeBatch = 1024

// exchange lets many callers share one stream: while one message is being written, the next fills.
type exchange struct {
	stream grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]
	cancel context.CancelFunc
	loops  sync.WaitGroup
	calls  chan *idnodev1.Call
	// ended is closed when the stream has ended, with err.
	ended chan struct{}
	err   error

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *idnodev1.Reply
}

func newExchange(ctx context.Context, ids idnodev1.IdsServiceClient) (*exchange, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := ids.Exchange(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	x := &exchange{
		stream: stream, cancel: cancel, calls: make(chan *idnodev1.Call, exchangeBatch), ended: make(chan struct{}),
		waiting: map[uint64]chan *idnodev1.Reply{},
	}
	x.loops.Go(x.write)
	x.loops.Go(x.read)
	return x, nil
}

// close ends the stream; every call has been answered by then.
func (x *exchange) close() {
	x.cancel()
	x.loops.Wait()
}

func (x *exchange) write() {
	for {
		select {
		case call := <-x.calls:
			message := &idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}
			for len(x.calls) > 0 && len(message.Calls) < exchangeBatch {
				message.Calls = append(message.Calls, <-x.calls)
			}
			if err := x.stream.Send(message); err != nil {
				return // The reader hears why.
			}
		case <-x.ended:
			return
		}
	}
}

func (x *exchange) read() {
	defer close(x.ended)
	for {
		message, err := x.stream.Recv()
		if err != nil {
			x.err = err
			return
		}
		x.mu.Lock()
		for _, reply := range message.Replies {
			if answer, ok := x.waiting[reply.Correlation]; ok {
				delete(x.waiting, reply.Correlation)
				answer <- reply
			}
		}
		x.mu.Unlock()
	}
}

func (x *exchange) call(ctx context.Context, c *idnodev1.Call) (*idnodev1.Reply, error) {
	answer := make(chan *idnodev1.Reply, 1)
	x.mu.Lock()
	x.last++
	c.Correlation = x.last
	x.waiting[c.Correlation] = answer
	x.mu.Unlock()
	select {
	case x.calls <- c:
	case <-x.ended:
	case <-ctx.Done():
	}
	select {
	case reply := <-answer:
		if e := reply.GetError(); e != nil {
			return nil, status.ErrorProto(&spb.Status{Code: e.Code, Message: e.Message, Details: e.Details})
		}
		return reply, nil
	case <-x.ended:
		return nil, errors.Join(errors.New("the stream ended"), x.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (x *exchange) Generate(ctx context.Context, req *idnodev1.GenerateRequest, _ ...grpc.CallOption) (*idnodev1.GenerateResponse, error) {
	r, err := x.call(ctx, &idnodev1.Call{Call: &idnodev1.Call_Generate{Generate: req}})
	return r.GetGenerate(), err
}

func (x *exchange) NextIdentity(
	ctx context.Context, req *idnodev1.NextIdentityRequest, _ ...grpc.CallOption,
) (*idnodev1.NextIdentityResponse, error) {
	r, err := x.call(ctx, &idnodev1.Call{Call: &idnodev1.Call_NextIdentity{NextIdentity: req}})
	return r.GetNextIdentity(), err
}

func (x *exchange) NextRange(
	ctx context.Context, req *idnodev1.NextRangeRequest, _ ...grpc.CallOption,
) (*idnodev1.NextRangeResponse, error) {
	r, err := x.call(ctx, &idnodev1.Call{Call: &idnodev1.Call_NextRange{NextRange: req}})
	return r.GetNextRange(), err
}
