package simulation

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// exchangeLimit is the most calls of one stream.
const exchangeLimit = 12

// malformed is the kind of a call that must be refused. It is no part of the
// history.
const malformed history.Kind = "malformed"

// exchange makes calls side by side on one stream, in one message or in several.
func (c *client) exchange(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.answerLimit())
	defer cancel()
	s := pick(c.random, c.world.machines()...)
	pending, ticket := map[uint64]history.Op{}, c.world.tracer.asksEtags(s)
	stream, err := c.ids(s).Exchange(ctx)
	if err == nil {
		err = c.sendCalls(stream, s, pending)
	}
	for err == nil {
		var r *idnodev1.ExchangeResponse
		if r, err = stream.Recv(); err == nil {
			c.takeReplies(r, pending, ticket)
		}
	}
	for _, op := range pending { // The stream ended without their replies.
		if op.Kind == malformed {
			continue
		}
		op.Outcome, op.Code = history.Unknown, grpcstatus.Code(err).String()
		c.world.history.add(op)
	}
}

// sendCalls sends all calls, and says that there are no more.
func (c *client) sendCalls(stream grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse], s *server,
	pending map[uint64]history.Op,
) error {
	var calls []*idnodev1.Call
	for number := range 1 + c.random.Uint64N(exchangeLimit) {
		call, op := c.drawCall(s)
		op.Client, op.Node, op.Call = int64(c.number), s.tag(), c.world.history.now()
		call.Correlation = number
		pending[number] = op
		if calls = append(calls, call); c.random.IntN(3) != 0 {
			continue
		}
		if err := stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
			return err
		}
		calls = nil
	}
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: calls}); err != nil {
		return err
	}
	return stream.CloseSend()
}

// drawCall draws a call that has nothing to do with those before it.
func (c *client) drawCall(s *server) (*idnodev1.Call, history.Op) {
	call := &idnodev1.Call{}
	if c.random.IntN(2) == 0 {
		call.Timeout = durationpb.New(c.answerLimit())
	}
	op := history.Op{Kind: history.Next, Name: c.name(), Count: pick[int64](c.random, 1, 1, 5)}
	switch c.random.IntN(12) {
	case 0: // One that is refused must not harm those beside it.
		op.Count = -1
		call.Call = &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{Name: op.Name, Count: op.Count}}
		return call, history.Op{Kind: malformed}
	case 1, 2, 3:
		s.ceilings.asked("")
		op = history.Op{Kind: history.Etag, Count: op.Count}
		call.Call = &idnodev1.Call_Generate{Generate: &idnodev1.GenerateRequest{Template: "users/", Count: op.Count, BlocksOnly: true}}
		return call, op
	}
	id := c.request(&op)
	call.Call = &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{
		Name:  c.spelled(op.Name),
		Count: op.Count, RequestId: id,
	}}
	return call, op
}

// takeReplies records the calls that were answered.
func (c *client) takeReplies(r *idnodev1.ExchangeResponse, pending map[uint64]history.Op, ticket etagTicket) {
	for _, reply := range r.GetReplies() {
		op, asked := pending[reply.GetCorrelation()]
		if !asked {
			c.world.found("a reply to no call, or the second: %v", reply)
			continue
		}
		delete(pending, reply.GetCorrelation())
		op.Outcome, op.Code = outcomeOf(replyError(reply))
		if op.Kind == malformed {
			if op.Outcome == history.OK {
				c.world.found("a call for -1 values was answered: %v", reply)
			}
			continue
		}
		switch answer := reply.GetReply().(type) {
		case *idnodev1.Reply_NextIdentity:
			op.Blocks = blocks(answer.NextIdentity.GetBlocks())
			c.world.tracer.answered(clientHost(c.number), answer.NextIdentity.GetLogIndex(), op.Blocks)
		case *idnodev1.Reply_Generate:
			op.Tag = answer.Generate.GetNodeTag()
			for _, b := range answer.Generate.GetBlocks() {
				op.Blocks = append(op.Blocks, history.Block{First: b.GetFirst(), Last: b.GetLast()})
			}
			c.world.tracer.gaveEtags(ticket, op.Database, op.Blocks)
		}
		c.world.history.add(op)
	}
}

func replyError(reply *idnodev1.Reply) error {
	e := reply.GetError()
	if e == nil {
		return nil
	}
	return grpcstatus.ErrorProto(&status.Status{Code: e.GetCode(), Message: e.GetMessage(), Details: e.GetDetails()})
}
