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
	wake   chan struct{}
	loops  sync.WaitGroup

	mu      sync.Mutex
	last    uint64
	queue   []*idnodev1.Call
	waiting map[uint64]chan *idnodev1.Reply
	// err is why the stream ended.
	err error
}

func newExchange(ctx context.Context, ids idnodev1.IdsServiceClient) (*exchange, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := ids.Exchange(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	x := &exchange{stream: stream, cancel: cancel, wake: make(chan struct{}, 1), waiting: map[uint64]chan *idnodev1.Reply{}}
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
		case <-x.wake:
		case <-x.stream.Context().Done():
			return
		}
		for {
			calls := x.next()
			if len(calls) == 0 {
				break
			}
			if err := x.stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
				return // The reader hears why.
			}
		}
	}
}

// next takes the calls of one message.
func (x *exchange) next() []*idnodev1.Call {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := min(len(x.queue), exchangeBatch)
	calls := x.queue[:n:n]
	x.queue = x.queue[n:]
	return calls
}

func (x *exchange) read() {
	for {
		message, err := x.stream.Recv()
		if err != nil {
			x.fail(err)
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

func (x *exchange) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.err = err
	for _, answer := range x.waiting {
		close(answer)
	}
	x.waiting = nil
}

// call sends one call and waits for its reply.
func (x *exchange) call(ctx context.Context, c *idnodev1.Call) (*idnodev1.Reply, error) {
	answer, err := x.enqueue(c)
	if err != nil {
		return nil, err
	}
	select {
	case reply, ok := <-answer:
		if !ok {
			return nil, x.ended()
		}
		if e := reply.GetError(); e != nil {
			return nil, status.ErrorProto(&spb.Status{Code: e.Code, Message: e.Message, Details: e.Details})
		}
		return reply, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (x *exchange) enqueue(c *idnodev1.Call) (<-chan *idnodev1.Reply, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return nil, x.err
	}
	x.last++
	c.Correlation = x.last
	answer := make(chan *idnodev1.Reply, 1)
	x.waiting[c.Correlation] = answer
	x.queue = append(x.queue, c)
	select {
	case x.wake <- struct{}{}:
	default:
	}
	return answer, nil
}

func (x *exchange) ended() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(errors.New("the stream ended"), x.err)
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
