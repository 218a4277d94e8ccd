package grpcapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/test/fsmtest"
)

// pipe is both ends of an Exchange stream without a network, for tests in a
// bubble: its server sends a message only when somebody takes it out.
type pipe struct {
	grpc.ServerStream
	*backend
	server *services
	budget *budget.Budget
	ctx    context.Context
	cancel context.CancelFunc
	in     chan *idnodev1.ExchangeRequest
	out    chan *idnodev1.ExchangeResponse
	// ended gets what the handler returned.
	ended chan error
}

// newPipe starts an Exchange; the bounds are those of the calls of a stream, and of the
// bytes held for all.
func newPipe(t testing.TB, perStream int, inAll int64) *pipe {
	t.Helper()
	b := newBackend(t)
	return (&pipe{backend: b, budget: budget.New(budget.Limits{Bytes: 2 * inAll, Connections: 2}), server: &services{
		Service: newService(t, b), log: &requestLog{logger: slog.New(slog.DiscardHandler), observer: quiet{}},
		exchanges: newExchanges(perStream, 10_000),
	}}).start(t)
}

// another starts another stream of the same server.
func (p *pipe) another(t testing.TB) *pipe {
	t.Helper()
	return (&pipe{backend: p.backend, budget: p.budget, server: p.server}).start(t)
}

func (p *pipe) start(t testing.TB) *pipe {
	p.ctx, p.cancel = context.WithCancel(peer.NewContext(context.Background(), &peer.Peer{Addr: address{held: p.budget.Open("shop")}}))
	p.in, p.out = make(chan *idnodev1.ExchangeRequest), make(chan *idnodev1.ExchangeResponse)
	p.ended = make(chan error, 1)
	go func() {
		err := p.server.Exchange(&grpc.GenericServerStream[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]{ServerStream: p})
		p.cancel() // As gRPC does.
		p.ended <- err
	}()
	t.Cleanup(p.cancel)
	return p
}

// address is that of a caller for whom is counted what is held.
type address struct {
	net.Addr
	held *budget.Connection
}

func (a address) Budget() *budget.Connection { return a.held }

func (p *pipe) Context() context.Context { return p.ctx }

// RecvMsg gives the server what it gets over gRPC: an encoded message.
func (p *pipe) RecvMsg(m any) error {
	select {
	case req, ok := <-p.in:
		if !ok {
			return io.EOF
		}
		data, err := proto.Marshal(req)
		m.(*received).pieces = mem.BufferSlice{mem.SliceBuffer(data)}
		return err
	case <-p.ctx.Done():
		return status.FromContextError(p.ctx.Err()).Err()
	}
}

func (p *pipe) SendMsg(m any) error {
	defer m.(*encoded).free()
	res := new(idnodev1.ExchangeResponse)
	if err := proto.Unmarshal(m.(*encoded).bytes(), res); err != nil {
		return err
	}
	select {
	case p.out <- res:
		return nil
	case <-p.ctx.Done():
		return status.FromContextError(p.ctx.Err()).Err()
	}
}

// call sends calls in one message.
func (p *pipe) call(calls ...*idnodev1.Call) {
	p.in <- &idnodev1.ExchangeRequest{Calls: calls}
}

// close half-closes the stream.
func (p *pipe) close() { close(p.in) }

// replies takes messages until everybody waits for something else.
func (p *pipe) replies() map[uint64]*idnodev1.Reply {
	replies := make(map[uint64]*idnodev1.Reply)
	for {
		synctest.Wait()
		select {
		case res := <-p.out:
			for _, r := range res.GetReplies() {
				replies[r.GetCorrelation()] = r
			}
		default:
			return replies
		}
	}
}

// hold keeps proposals waiting until the function it returns is called.
func (b *backend) hold() (release func()) {
	gate := make(chan struct{})
	b.Set(func(f *fsmtest.Faults) { f.Gate = gate })
	return func() {
		b.Set(func(f *fsmtest.Faults) { f.Gate = nil })
		close(gate)
	}
}

// replyError is the error in a reply, as an error of a method; nil without one.
func replyError(r *idnodev1.Reply) error {
	e := r.GetError()
	if e == nil {
		return nil
	}
	return status.FromProto(&spb.Status{Code: e.GetCode(), Message: e.GetMessage(), Details: e.GetDetails()}).Err()
}

func generate(correlation uint64, req *idnodev1.GenerateRequest) *idnodev1.Call {
	return &idnodev1.Call{Correlation: correlation, Call: &idnodev1.Call_Generate{Generate: req}}
}

// guid is a call that never waits.
func guid(correlation uint64) *idnodev1.Call {
	return generate(correlation, &idnodev1.GenerateRequest{})
}

func (e encoded) bytes() []byte {
	if e.buffer == nil {
		return nil
	}
	return *e.buffer
}
