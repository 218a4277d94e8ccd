package grpcapi

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/service"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

const (
	// maxCallsPerMessage bounds the errors that one message can cause.
	maxCallsPerMessage = 8192
	// maxReplyBytes is where a message of replies is full. A reply is at most
	// little more than service.MaxIDsBytes, so a message stays far below what
	// clients accept.
	maxReplyBytes = 1 << 20
	// maxTextBytes bounds the ids that the replies of a stream hold as text.
	maxTextBytes = 4 * service.MaxIDsBytes
)

// exchange is one Exchange stream. Three kinds of goroutine work on it: the
// handler's, which reads calls; one that sends replies; and one for each call.
//
// Invariant: a call that was let in is in underWay until its reply is taken to be
// sent, so what a caller who does not read can make the node keep is bounded:
// the calls that may be under way, the replies being sent, and the errors of
// calls that were not let in, which keep the stream from being read.
type exchange struct {
	server *idsServer
	stream grpc.BidiStreamingServer[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]
	calls  sync.WaitGroup
	// workers run the calls.
	workers workers
	// wake has room for one: it tells the sender that there is something to do,
	// and room tells the reader that replies were taken.
	wake, room chan struct{}

	mu sync.Mutex
	// underWay holds the calls that were let in, by correlation number.
	underWay map[uint64]int64
	// text is the sum of underWay: what the ids of the replies may need as text.
	text  int64
	ready []ready
	// refused is how many of ready are of calls that were not let in.
	refused int
	// ended says that no reply will follow.
	ended bool
}

// ready is a reply that waits to be sent.
type ready struct {
	reply *idnodev1.Reply
	// admitted says that the call was let in.
	admitted bool
}

// Exchange answers the calls of a stream, side by side, until the caller has sent
// its last one or goes away.
func (s *idsServer) Exchange(stream grpc.BidiStreamingServer[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]) error {
	x := &exchange{
		server: s, stream: stream, underWay: make(map[uint64]int64),
		workers: workers{jobs: make(chan job)}, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	sent := make(chan error, 1)
	go func() { sent <- x.send() }()
	err := x.receive()
	x.calls.Wait()
	close(x.workers.jobs)
	x.end()
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	return err
}

// receive takes calls up until there are no more.
func (x *exchange) receive() error {
	for {
		req, err := x.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n := len(req.GetCalls()); n > maxCallsPerMessage {
			return statusError(badRequest(service.ReasonInvalidCount, "calls", "a message has more than 8192 calls"))
		}
		x.begin(req.GetCalls())
		x.awaitRoom()
	}
}

// begin starts the calls of a message. They share one deadline of the server's.
func (x *exchange) begin(calls []*idnodev1.Call) {
	admitted := x.admit(calls)
	if len(admitted) == 0 {
		return
	}
	ctx, cancel := x.server.service.Bounded(x.stream.Context())
	m := &message{x: x, ctx: ctx, start: time.Now()}
	m.left.Store(int64(len(admitted)))
	m.cancel = cancel
	x.calls.Add(len(admitted))
	for _, call := range admitted {
		x.workers.run(m, call)
	}
}

// message is what the calls of one message share.
type message struct {
	x      *exchange
	ctx    context.Context
	start  time.Time
	left   atomic.Int64
	cancel context.CancelFunc
}

// run makes one call of the message.
func (m *message) run(call *idnodev1.Call) {
	defer m.x.calls.Done()
	reply := m.x.server.answer(m.ctx, call, m.start)
	m.x.put(ready{reply: reply, admitted: true})
	if m.left.Add(-1) == 0 {
		m.cancel()
	}
}

// admit lets calls in as far as the bounds allow, and answers the others.
func (x *exchange) admit(calls []*idnodev1.Call) []*idnodev1.Call {
	admitted := make([]*idnodev1.Call, 0, len(calls))
	x.mu.Lock()
	for _, call := range calls {
		if refusal := x.enter(call); refusal != nil {
			x.ready = append(x.ready, ready{reply: &idnodev1.Reply{
				Correlation: call.GetCorrelation(), Reply: &idnodev1.Reply_Error{Error: refusal},
			}})
			x.refused++
			continue
		}
		admitted = append(admitted, call)
	}
	x.mu.Unlock()
	if len(admitted) < len(calls) {
		notify(x.wake)
	}
	return admitted
}

// enter lets a call in, or says why not. x.mu is held.
func (x *exchange) enter(call *idnodev1.Call) *idnodev1.Error {
	if _, double := x.underWay[call.GetCorrelation()]; double {
		return x.server.exchanges.double
	}
	weight := textBytes(call)
	if len(x.underWay) >= x.server.exchanges.perStream || x.text+weight > maxTextBytes {
		return x.server.exchanges.overloaded
	}
	if !x.server.exchanges.enter() {
		return x.server.exchanges.overloaded
	}
	x.underWay[call.GetCorrelation()] = weight
	x.text += weight
	return nil
}

// textBytes bounds the text of the ids that a call asks for. What is more than
// one answer may hold is refused by the service, so it is not counted.
func textBytes(call *idnodev1.Call) int64 {
	req := call.GetGenerate()
	if req == nil || req.GetBlocksOnly() || req.GetCount() <= 1 || req.GetCount() > service.MaxIDs {
		return 0
	}
	const rest = 40 // a GUID, or the number and tag of an id
	return min(req.GetCount()*int64(len(req.GetTemplate())+rest), service.MaxIDsBytes)
}

// put hands a reply to the sender.
func (x *exchange) put(r ready) {
	x.mu.Lock()
	x.ready = append(x.ready, r)
	x.mu.Unlock()
	notify(x.wake)
}

// end tells the sender that it has got its last reply.
func (x *exchange) end() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	notify(x.wake)
}

// awaitRoom keeps the reader from causing more errors than the caller reads; its
// end of the stream then fills up, which is gRPC's flow control.
func (x *exchange) awaitRoom() {
	for x.crowded() {
		<-x.room
	}
}

func (x *exchange) crowded() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.refused > maxCallsPerMessage
}

// send sends replies until the last one, all that are ready in one message.
// After an error it goes on taking them, so that nobody waits for room.
func (x *exchange) send() error {
	var failed error
	for {
		replies, ok := x.take()
		if !ok {
			return failed
		}
		if failed == nil {
			failed = x.sendAll(replies)
		}
	}
}

// take waits for replies and takes them all; false says that there are no more.
func (x *exchange) take() ([]ready, bool) {
	for {
		if taken, ended := x.takeReady(); len(taken) > 0 || ended {
			return taken, len(taken) > 0
		}
		<-x.wake
		// Calls that shared a log entry are answered one after the other in the
		// next microseconds. Whoever can run now runs first; nobody who has to
		// wait is waited for.
		runtime.Gosched()
	}
}

func (x *exchange) takeReady() (taken []ready, ended bool) {
	x.mu.Lock()
	taken, x.ready, x.refused = x.ready, nil, 0
	left := 0
	for _, r := range taken {
		if !r.admitted {
			continue
		}
		left++
		x.text -= x.underWay[r.reply.GetCorrelation()]
		delete(x.underWay, r.reply.GetCorrelation())
	}
	ended = x.ended
	x.mu.Unlock()
	x.server.exchanges.leave(left)
	if len(taken) > 0 {
		notify(x.room)
	}
	return taken, ended
}

// sendAll sends replies in as few messages as their size allows.
func (x *exchange) sendAll(replies []ready) error {
	list := make([]*idnodev1.Reply, 0, len(replies))
	bytes := 0
	for _, r := range replies {
		size := proto.Size(r.reply)
		if bytes+size > maxReplyBytes && len(list) > 0 {
			if err := x.stream.Send(&idnodev1.ExchangeResponse{Replies: list}); err != nil {
				return err
			}
			// Whoever looks at messages on their way may still hold the old list.
			list, bytes = make([]*idnodev1.Reply, 0, len(replies)), 0
		}
		list, bytes = append(list, r.reply), bytes+size
	}
	return x.stream.Send(&idnodev1.ExchangeResponse{Replies: list})
}

// notify leaves a note in a channel that has room for one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// exchanges are the bounds that all Exchange streams of a server share.
type exchanges struct {
	perStream int
	inAll     int64
	// held is how many calls of all streams are let in.
	held atomic.Int64
	// What calls that are not let in are answered; there may be very many.
	overloaded, double *idnodev1.Error
}

func newExchanges(perStream, inAll int) *exchanges {
	return &exchanges{
		perStream: perStream, inAll: int64(inAll),
		overloaded: errorMessage(statusError(&service.Error{
			Code: service.ResourceExhausted, Reason: service.ReasonOverloaded,
			Message: "too many calls are under way on this stream, or at this node", RetryAfter: 100 * time.Millisecond,
		})),
		double: errorMessage(statusError(badRequest(
			service.ReasonInvalidCorrelation, "correlation", "a call with this correlation number is under way",
		))),
	}
}

func (e *exchanges) enter() bool {
	if e.held.Add(1) > e.inAll {
		e.held.Add(-1)
		return false
	}
	return true
}

func (e *exchanges) leave(n int) { e.held.Add(-int64(n)) }
