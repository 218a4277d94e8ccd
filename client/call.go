package client

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// firstPause and longestPause bound the pause between two tries once every endpoint was
	// tried; it doubles from try to try.
	firstPause   = 25 * time.Millisecond
	longestPause = 400 * time.Millisecond
	// maxOverloads bounds the ErrOverloaded answers to one call: more tries would prolong
	// the overload.
	maxOverloads = 3
)

// method is a unary method of one of the services in api.
type method[Service, Req, Resp any] func(Service, context.Context, Req, ...grpc.CallOption) (Resp, error)

// at calls the method at a node.
func (m method[Service, Req, Resp]) at(ctx context.Context, n *node, req Req) (Resp, error) {
	return m(any(n.api).(Service), ctx, req)
}

// logIndexed is implemented by all responses of the cluster.
type logIndexed interface{ GetLogIndex() uint64 }

// plan says how a call may be made.
type plan struct {
	// toLeader means that the cluster decides the call, so that any other node would forward
	// it.
	toLeader bool
	// id makes the call count once. Nil for calls that may be repeated without an id, because
	// they change nothing, or because gaps in the numbers they take are harmless.
	id *idnodev1.RequestId
	// own means that the id was made for this call: no other call has sent it.
	own bool
	// changes means that the call changes something without an id. It may be repeated, because
	// a repetition finds the change done and does nothing.
	changes bool
}

// request is a request about a database.
type request interface {
	proto.Message
	GetDatabase() string
}

// counted is a request with a request id.
type counted interface {
	request
	GetRequestId() *idnodev1.RequestId
}

// ask makes a call that only reads.
func ask[Service any, Req request, Resp logIndexed](ctx context.Context, c *Client, o options, m method[Service, Req, Resp],
	req Req,
) (Resp, error) {
	return invoke(ctx, c, o, plan{toLeader: true}, m, req)
}

// change makes a call that changes something and may be repeated without a request id.
func change[Service any, Req request, Resp logIndexed](ctx context.Context, c *Client, o options, m method[Service, Req, Resp],
	req Req,
) (Resp, error) {
	return invoke(ctx, c, o, plan{toLeader: true, changes: true}, m, req)
}

// once makes a call that counts once; the request id is already in req.
func once[Service any, Req counted, Resp logIndexed](ctx context.Context, c *Client, o options, m method[Service, Req, Resp],
	req Req,
) (Resp, error) {
	return invoke(ctx, c, o, plan{toLeader: true, id: req.GetRequestId(), own: o.requestID == ""}, m, req)
}

func invoke[Service any, Req request, Resp logIndexed](ctx context.Context, c *Client, o options, p plan, m method[Service, Req, Resp],
	req Req,
) (Resp, error) {
	var got Resp
	if o.err != nil {
		return got, o.err
	}
	if err := sendable(req); err != nil {
		return got, err
	}
	first := true
	r := c.router(req.GetDatabase())
	err := r.run(ctx, p, func(ctx context.Context, n *node, since *uint64) (err error) {
		if !first && since != nil {
			req = retryOf(req, *since)
		}
		first = false
		got, err = attempt(ctx, r, n, m, req)
		return err
	})
	if err != nil {
		var none Resp
		return none, err
	}
	r.saw(got.GetLogIndex())
	return got, nil
}

// attempt makes one try, in a shared message if possible. ctx has a deadline.
func attempt[Service any, Req request, Resp logIndexed](ctx context.Context, r *router, n *node, m method[Service, Req, Resp],
	req Req,
) (Resp, error) {
	var none Resp
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 || ctx.Err() != nil {
		<-ctx.Done() // The timer of ctx may be late.
		return none, unreachable("the node", ctx.Err())
	}
	call := callOf(left, r.cfg.TryTimeout, req)
	if call == nil || r.cfg.Unshared {
		return m.at(r.cfg.traced(ctx), n, req)
	}
	call.Traceparent = r.cfg.traceparent(ctx)
	reply, err := n.lane.exchange(ctx, call)
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

// callTries are the tries of a call so far, and their outcome.
type callTries struct {
	plan
	// since is the newest log index known before the first try, or the caller's.
	since uint64
	// last is the newest error, and told the error that the caller would get.
	last, told *Error
	node       *node
	tries      int
	// foreign counts the consecutive newest tries that found no node of the client's cluster.
	foreign   int
	overloads int
	// unknown means that a try may have taken effect.
	unknown bool
	// repeats means that the caller has made the call before: until the cluster decides the
	// call, its outcome is that of the earlier call.
	repeats bool
}

// run makes tries at changing nodes until one gives a final answer or the time is over.
func (r *router) run(ctx context.Context, p plan, try func(context.Context, *node, *uint64) error) error {
	within := newCallTimeout(ctx, r.cfg.Timeout)
	defer within.close()
	switch {
	case p.toLeader && r.newest.Load() == 0:
		r.known(within.context())
	case p.id != nil && !r.fresh():
		r.refresh(within.context())
	}
	at := callTries{plan: p, since: r.newest.Load()}
	switch {
	case p.id == nil:
	case p.id.RetrySince != nil:
		at.since, at.repeats = p.id.GetRetrySince(), !p.own
	case at.since > 0:
		// The first try names it too: the network may delay that try until its retry was applied
		// and forgotten.
		p.id.RetrySince = proto.Uint64(at.since)
	}
	if ctx.Err() != nil {
		return at.fail(ctx, unreachable("the cluster", ctx.Err()))
	}
	for {
		n, err := r.route(p.toLeader, at.node)
		if err != nil {
			return at.fail(ctx, errorOf(err))
		}
		if err = r.observed(within, n, at.tries+1, at.retrySince(), try); err == nil {
			n.trust()
			return nil
		}
		at.note(n, errorOf(err))
		bound := within.context()
		if bound.Err() != nil {
			r.relook()
			return at.fail(ctx, at.told)
		}
		if at.begunTooOld() && at.renew(r.latest(bound)) {
			continue
		}
		if at.last.effect() == effectRefused || at.overloads > maxOverloads || at.allForeign(len(r.given), r.newest.Load() != 0) {
			return at.fail(ctx, at.told)
		}
		if at.last.Reason != reasonOverloaded {
			r.failed(n)
		}
		r.cfg.Logger.Info("idnode: a call is repeated", "node", n.address, "attempt", at.tries, "error", at.last)
		if !sleep(bound, at.pause(len(r.given))) {
			return at.fail(ctx, at.told)
		}
	}
}

// observed is try, and tells Config.Observe.
func (r *router) observed(within *callTimeout, n *node, attempt int, since *uint64, try func(context.Context, *node, *uint64) error) error {
	if r.cfg.Observe == nil {
		return r.try(within, n, since, try)
	}
	e, began := Event{Kind: EventTry, Node: n.address, Attempt: attempt}, time.Now()
	err := r.try(within, n, since, try)
	e.Duration = time.Since(began)
	if err != nil {
		e.Err = errorOf(err)
	}
	r.cfg.tell(e)
	return err
}

// try makes one try at one node.
func (r *router) try(within *callTimeout, n *node, since *uint64, try func(context.Context, *node, *uint64) error) error {
	if !n.isReady() {
		if err := n.ready(within.context()); err != nil {
			return err
		}
	}
	dialled, err := r.own(within, n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(within.present(), r.cfg.TryTimeout)
	defer cancel()
	leave := r.whenSilent(ctx, n, cancel)
	err = try(ctx, n, since)
	if leave() && status.Code(err) == codes.Canceled {
		err = status.Errorf(codes.Unavailable, "the node at %s is silent", n.address)
	}
	if foreign := r.stillOwn(within, n, dialled, err); foreign != nil {
		return foreign
	}
	return err
}

// retrySince returns the log index known before the first try, for a retry; nil for calls
// without a request id.
func (p *callTries) retrySince() *uint64 {
	if p.id == nil {
		return nil
	}
	return &p.since
}

// note records a failed try.
func (p *callTries) note(n *node, err *Error) {
	p.node = n
	p.last = err
	// The error of a node that answered says more than that of an unreachable node.
	if p.told == nil || err.Reason != reasonNoEndpoint {
		p.told = err
	}
	p.tries++
	p.foreign++
	if !err.foreign {
		p.foreign = 0
	}
	if err.Reason == reasonOverloaded {
		p.overloads++
	}
	p.unknown = p.unknown || (p.id != nil || p.changes) && (err.Unknown || err.effect() == effectUnknown)
}

// allForeign reports whether as many tries as there are endpoints found no node of the
// client's cluster, but something else. An endpoint that does not answer may be its node. So may
// a proxy that has led to one: it may have none at present.
func (p *callTries) allForeign(endpoints int, known bool) bool {
	return p.foreign >= endpoints && (p.last.Reason == reasonOtherCluster || !known)
}

// begunTooOld reports whether the named index was forgotten before the first try arrived, and
// the call may start again with a newer index: no other call has sent its request id, no try
// took effect, and a late copy of a try names the old index.
func (p *callTries) begunTooOld() bool {
	return p.own && p.last.Reason == reasonExpired && !p.unknown
}

// renew starts the call again, once, with a newer index; it returns false if it cannot.
func (p *callTries) renew(since uint64) bool {
	if since <= p.since {
		return false
	}
	p.own, p.node, p.since, p.told = false, nil, since, nil
	return true
}

// pause returns the pause before the next try: 0 while there are untried endpoints.
func (p *callTries) pause(endpoints int) time.Duration {
	if p.last.Reason == reasonOverloaded {
		return max(p.last.RetryAfter, firstPause)
	}
	round := p.tries - endpoints
	if round < 0 {
		return 0
	}
	d := min(firstPause<<min(round, 10), longestPause)
	return d/2 + rand.N(d)/2
}

// fail returns the error of a call that is given up because of err.
func (p *callTries) fail(ctx context.Context, err *Error) error {
	e := *err
	e.Unknown = p.unknown || p.repeats && !err.decided()
	if p.id != nil {
		e.RequestID, e.RetrySince = p.id.GetId(), p.since
	}
	if e.Reason == "" && !e.Unknown && err.effect() == effectUnknown {
		e.Reason = reasonNoEndpoint
		e.Message = "no node answered: " + e.Message
	}
	if cause := ctx.Err(); cause != nil {
		e.err = fmt.Errorf("%w: %w", cause, err)
		// A node that could not be reached until a deadline stays the reason.
		if !e.Unknown && e.Reason == reasonNoEndpoint && (errors.Is(cause, context.Canceled) || errors.Is(err, cause)) {
			e.Code, e.Reason = codes.Canceled, reasonCanceled
			if errors.Is(cause, context.DeadlineExceeded) {
				e.Code, e.Reason = codes.DeadlineExceeded, reasonDeadline
			}
			e.Message = "the context ended before the call was sent: " + e.Message
		}
	}
	return &e
}

// sleep waits for d, and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
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

// callTimeout is the time of a call with all its tries. Its context is made on first use,
// because a context with a timer is the most expensive part of a call, and most calls end
// with their first try, which has a timer of its own.
type callTimeout struct {
	ctx    context.Context
	end    time.Time
	cancel context.CancelFunc
}

func newCallTimeout(ctx context.Context, d time.Duration) *callTimeout {
	return &callTimeout{ctx: ctx, end: time.Now().Add(d)}
}

// context returns the context that ends with the call's time.
func (t *callTimeout) context() context.Context {
	if t.cancel == nil {
		t.ctx, t.cancel = context.WithDeadline(t.ctx, t.end)
	}
	return t.ctx
}

// present returns the call's context if it was made, else the caller's. The user must bound
// its use by no more than the call's time.
func (t *callTimeout) present() context.Context { return t.ctx }

// close releases the context.
func (t *callTimeout) close() {
	if t.cancel != nil {
		t.cancel()
	}
}
