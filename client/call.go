package client

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
)

// method is a unary method of one of the services in api, such as (*api).Claim.
type method[Req, Resp any] func(*api, context.Context, Req, ...grpc.CallOption) (Resp, error)

// logIndexed is implemented by all responses of the cluster.
type logIndexed interface{ GetLogIndex() uint64 }

// request is a request about a database.
type request interface {
	proto.Message
	GetDatabase() string
}

// invoke makes a call. The request id of one that counts once is already in req.
func invoke[Req request, Resp logIndexed](
	ctx context.Context, c *Client, o options, kind callKind, m method[Req, Resp], req Req,
) (Resp, error) {
	var got, none Resp
	if o.err != nil {
		return none, o.err
	}
	if err := sendable(req); err != nil {
		return none, err
	}
	t := tries{kind: kind}
	if counted, ok := any(req).(interface{ GetRequestId() *idnodev1.RequestId }); ok {
		t.id, t.own = counted.GetRequestId(), o.requestID == ""
	}
	r := c.router(req.GetDatabase())
	err := r.run(ctx, t, func(ctx context.Context, n *node, since *uint64) (err error) {
		if since != nil {
			req = retryOf(req, *since)
		}
		got, err = attempt(ctx, r, n, m, req)
		return err
	})
	if err != nil {
		return none, err
	}
	r.saw(got.GetLogIndex())
	return got, nil
}

// attempt makes one try, in a shared message if possible. ctx has a deadline.
func attempt[Req request, Resp logIndexed](ctx context.Context, r *router, n *node, m method[Req, Resp], req Req) (Resp, error) {
	var none Resp
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 || ctx.Err() != nil {
		<-ctx.Done() // The timer of ctx may be late.
		return none, unreachable("the node", ctx.Err())
	}
	call := callOf(left, r.cfg.TryTimeout, req)
	if call == nil || r.cfg.Unshared {
		return m(n.api, r.named(r.cfg.traced(ctx)), req)
	}
	call.Traceparent = r.cfg.traceparent(ctx)
	reply, err := n.exchange(ctx, call)
	if err != nil {
		return none, err
	}
	got, ok := answerOf(reply).(Resp)
	if !ok {
		return none, status.Error(codes.Internal, "an answer to another call")
	}
	return got, nil
}

// retryOf returns the request as a retry, with the log index known before the first try: a
// cluster that no longer remembers request ids from then refuses it. It is a copy, since the
// first request, which may have no index, may still be in flight.
func retryOf[Req proto.Message](req Req, since uint64) Req {
	again := proto.CloneOf(req)
	m := again.ProtoReflect()
	field := m.Descriptor().Fields().ByName("request_id")
	if id, ok := m.Mutable(field).Message().Interface().(*idnodev1.RequestId); ok {
		id.RetrySince = proto.Uint64(since)
	}
	return again
}

// newRequestID returns the caller's request id, or 16 random bytes as text.
func (o options) newRequestID() *idnodev1.RequestId {
	if o.requestID != "" {
		return &idnodev1.RequestId{Id: o.requestID, RetrySince: o.retrySince}
	}
	return &idnodev1.RequestId{Id: randomID()}
}

// randomID returns 16 random bytes as text.
func randomID() string {
	var b [16]byte
	_, _ = crand.Read(b[:]) // crand.Read never fails
	return hex.EncodeToString(b[:])
}

// maxRequestBytes bounds a request, far above a node's bound for any call.
const maxRequestBytes = 1 << 20

// sendable refuses a request that cannot be encoded, as one whose text is not UTF-8, or that no
// node would read. In a shared message it would break the stream of all its calls, again at each
// try, and leave its outcome unknown although nothing was sent.
func sendable(req request) error {
	if b, err := proto.Marshal(req); err != nil || len(b) > maxRequestBytes {
		return invalidField("INVALID_REQUEST", "", "a text of the call is not UTF-8, or the call is too large")
	}
	return nil
}

// pageSize is the number of items of a listing requested at a time.
const pageSize = 1000

// pages yields the items of all pages, and the first error as the last element. get returns
// one page and the token of the next, which is empty at the end.
func pages[T any](get func(token string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token, more := "", true; more; more = token != "" {
			page, next, err := get(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			token = next
		}
	}
}

// timeOf returns t; the zero time if t is not set.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
