package harness

import (
	"context"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// streamDoor is one node over an Exchange stream, which stays open from call to call
// until it breaks. Calls that no stream takes go in as plain ones. One caller at a
// time may use it.
type streamDoor struct {
	plainDoor
	stream      grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]
	cancel      context.CancelFunc
	correlation uint64
}

func (d *streamDoor) do(ctx context.Context, op *history.Op, token *string) error {
	call := streamCall(op, token)
	if call == nil {
		return d.plainDoor.do(ctx, op, token)
	}
	if err := d.open(); err != nil {
		return err
	}
	// A stream whose call's time ended is of no use any more, also if the answer came at that moment.
	stop := context.AfterFunc(ctx, d.cancel)
	reply, err := d.ask(call)
	late := !stop()
	if late || err != nil {
		d.close()
	}
	switch {
	case err == nil:
		return answered(op, reply, token)
	case late:
		return status.FromContextError(ctx.Err()).Err()
	}
	return err
}

func (d *streamDoor) open() error {
	if d.stream != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := d.n.Ids.Exchange(ctx)
	if err != nil {
		cancel()
		return err
	}
	d.stream, d.cancel = stream, cancel
	return nil
}

func (d *streamDoor) close() {
	d.cancel()
	d.stream = nil
}

// ask sends a call and waits for its reply.
func (d *streamDoor) ask(call *idnodev1.Call) (*idnodev1.Reply, error) {
	d.correlation++
	call.Correlation = d.correlation
	if err := d.stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}); err != nil {
		_, err = d.stream.Recv() // Says why.
		return nil, err
	}
	for {
		r, err := d.stream.Recv()
		if err != nil {
			return nil, err
		}
		for _, reply := range r.Replies {
			if reply.Correlation == d.correlation {
				return reply, nil
			}
		}
	}
}

// streamCall makes a call of a stream, or nil where no stream takes such calls.
func streamCall(op *history.Op, token *string) *idnodev1.Call {
	switch op.Kind {
	case history.Next:
		return &idnodev1.Call{Call: &idnodev1.Call_NextIdentity{NextIdentity: nextRequest(op)}}
	case history.Seed:
		return &idnodev1.Call{Call: &idnodev1.Call_SeedIdentity{SeedIdentity: seedRequest(op)}}
	case history.Claim:
		return &idnodev1.Call{Call: &idnodev1.Call_Claim{Claim: claimRequest(op)}}
	case history.Release:
		return &idnodev1.Call{Call: &idnodev1.Call_Release{Release: releaseRequest(op)}}
	case history.Range:
		return &idnodev1.Call{Call: &idnodev1.Call_NextRange{NextRange: rangeRequest(op)}}
	case history.Return:
		return &idnodev1.Call{Call: &idnodev1.Call_ReturnRange{ReturnRange: returnRequest(op, *token)}}
	case history.Etag:
		return &idnodev1.Call{Call: &idnodev1.Call_Generate{Generate: etagRequest(op)}}
	}
	return nil
}

// answered fills in the answer of a reply.
func answered(op *history.Op, reply *idnodev1.Reply, token *string) error {
	switch r := reply.Reply.(type) {
	case *idnodev1.Reply_Error:
		return status.ErrorProto(&spb.Status{Code: r.Error.Code, Message: r.Error.Message, Details: r.Error.Details})
	case *idnodev1.Reply_NextIdentity:
		took(op, r.NextIdentity.GetBlocks())
	case *idnodev1.Reply_SeedIdentity:
		op.Result = r.SeedIdentity.GetValue()
	case *idnodev1.Reply_NextRange:
		reserved(op, r.NextRange, token)
	case *idnodev1.Reply_ReturnRange:
		returned(op, r.ReturnRange)
	case *idnodev1.Reply_Generate:
		generated(op, r.Generate)
	}
	return nil
}
