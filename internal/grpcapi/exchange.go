package grpcapi

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	stream grpc.ServerStream
	calls  sync.WaitGroup
	// encodedCalls is the reader's: the room for the calls of a message.
	encodedCalls [][]byte
	// workers run the calls.
	workers workers
	// wake has room for one: it tells the sender that there is something to do,
	// and room tells the reader that replies were taken.
	wake, room chan struct{}

	mu sync.Mutex
	// underWay holds the calls that were let in, by correlation number. The reader
	// alone adds to it.
	underWay map[uint64]int64
	// text is the sum of underWay: what the ids of the replies may need as text.
	text  int64
	ready []*idnodev1.Reply
	// refusals are messages of replies to calls that were not let in, refused how
	// many bytes they have.
	refusals []encoded
	refused  int
	// ended says that no reply will follow.
	ended bool
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
		var request encoded
		if err := x.stream.RecvMsg(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		err := x.begin(request.bytes())
		request.free()
		if err != nil {
			return err
		}
		x.awaitRoom()
	}
}

// begin starts the calls of a message, as far as the bounds allow, and answers the
// others. A message that is none ends the stream.
func (x *exchange) begin(request []byte) error {
	calls, err := callsIn(x.encodedCalls[:0], request, maxCallsPerMessage)
	if err != nil {
		return malformed(err)
	}
	x.encodedCalls = calls
	if len(calls) > maxCallsPerMessage {
		return x.server.log.refuse(badRequest(service.ReasonInvalidCount, "calls", "a message has more than 8192 calls"))
	}
	m := &message{x: x, start: time.Now(), free: x.free()}
	for i, call := range calls {
		m.left = len(calls) - i
		if err := m.begin(call); err != nil {
			return malformed(err)
		}
	}
	m.runTogether()
	x.refuse(m.refusals)
	x.server.log.refused(service.ReasonOverloaded, m.overloaded)
	x.server.log.refused(service.ReasonInvalidCorrelation, m.doubles)
	return nil
}

func malformed(err error) error {
	return status.Errorf(codes.InvalidArgument, "the message cannot be decoded: %v", err)
}

// message is what the calls of one message share.
type message struct {
	x     *exchange
	start time.Time
	// free is how many more calls the stream may have under way, at least.
	free int64
	// left is how many calls are not begun, this one among them.
	left int
	// refusals are the replies to those that were not let in, overloaded and doubles
	// how many of them were so for which reason.
	refusals            encoded
	overloaded, doubles int
	// together are calls that were let in and are made in one go.
	together []*idnodev1.Call
}

// begin starts a call, or refuses it. What there is no room for is not decoded.
func (m *message) begin(encoded []byte) error {
	if m.free <= 0 || !m.x.server.exchanges.enter() {
		correlation, err := correlationOf(encoded)
		m.refuse(correlation, m.x.server.exchanges.overloaded)
		return err
	}
	call := new(idnodev1.Call)
	if err := proto.Unmarshal(encoded, call); err != nil {
		m.x.server.exchanges.turnAway()
		return err
	}
	if why := m.x.admit(call); why != nil {
		m.x.server.exchanges.turnAway()
		m.refuse(call.GetCorrelation(), why)
		return nil
	}
	m.free--
	m.x.calls.Add(1)
	if goesTogether(call) {
		m.together = append(m.together, call)
		return nil
	}
	m.x.workers.run(job{message: m, call: call})
	return nil
}

// refuse answers a call that was not let in.
func (m *message) refuse(correlation uint64, why *refusal) {
	if m.refusals.buffer == nil {
		// Where one call is refused most after it are.
		m.refusals = newEncoded(m.left * (headBytes + len(m.x.server.exchanges.overloaded.reply)))
	}
	*m.refusals.buffer = why.appendTo(*m.refusals.buffer, correlation)
	if why == m.x.server.exchanges.overloaded {
		m.overloaded++
	} else {
		m.doubles++
	}
}

// run makes one call of the message.
func (m *message) run(call *idnodev1.Call) {
	defer m.x.calls.Done()
	reply := m.x.server.answer(m.x.stream.Context(), call, m.start)
	m.x.server.exchanges.ran(1)
	m.x.put(reply)
}

// free is how many calls more the stream may have under way.
func (x *exchange) free() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.server.exchanges.perStream - int64(len(x.underWay))
}

// admit counts a call among those under way, or says why not.
func (x *exchange) admit(call *idnodev1.Call) *refusal {
	weight := textBytes(call)
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, double := x.underWay[call.GetCorrelation()]; double {
		return x.server.exchanges.double
	}
	if x.text+weight > maxTextBytes {
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

// put hands replies to the sender.
func (x *exchange) put(replies ...*idnodev1.Reply) {
	x.mu.Lock()
	x.ready = append(x.ready, replies...)
	x.mu.Unlock()
	notify(x.wake)
}

// refuse hands a message of refusals to the sender.
func (x *exchange) refuse(refusals encoded) {
	if refusals.buffer == nil {
		return
	}
	x.mu.Lock()
	x.refusals = append(x.refusals, refusals)
	x.refused += len(refusals.bytes())
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
	return x.refused > maxReplyBytes
}

// send sends replies until the last one, all that are ready in one message.
// After an error it goes on taking them, so that nobody waits for room.
func (x *exchange) send() error {
	var failed error
	for {
		replies, refusals, ok := x.take()
		if !ok {
			return failed
		}
		if failed == nil {
			failed = x.sendAll(replies, refusals)
		}
	}
}

// take waits for replies and takes them all; false says that there are no more.
func (x *exchange) take() (replies []*idnodev1.Reply, refusals []encoded, ok bool) {
	for {
		replies, refusals, ended := x.takeReady()
		if some := len(replies) > 0 || len(refusals) > 0; some || ended {
			return replies, refusals, some
		}
		<-x.wake
		// Calls that shared a log entry are answered one after the other in the
		// next microseconds. Whoever can run now runs first; nobody who has to
		// wait is waited for.
		runtime.Gosched()
	}
}

func (x *exchange) takeReady() (replies []*idnodev1.Reply, refusals []encoded, ended bool) {
	x.mu.Lock()
	replies, x.ready = x.ready, nil
	refusals, x.refusals, x.refused = x.refusals, nil, 0
	for _, reply := range replies {
		x.text -= x.underWay[reply.GetCorrelation()]
		delete(x.underWay, reply.GetCorrelation())
	}
	ended = x.ended
	x.mu.Unlock()
	x.server.exchanges.leave(len(replies))
	if len(replies) > 0 || len(refusals) > 0 {
		notify(x.room)
	}
	return replies, refusals, ended
}

// sendAll sends refusals and replies, these in as few messages as their size allows.
func (x *exchange) sendAll(replies []*idnodev1.Reply, refusals []encoded) error {
	for _, r := range refusals {
		if err := x.stream.SendMsg(&r); err != nil {
			return err
		}
	}
	return x.sendReplies(replies)
}

func (x *exchange) sendReplies(replies []*idnodev1.Reply) error {
	for len(replies) > 0 {
		n, bytes := 0, 0
		for n < len(replies) && (n == 0 || bytes+size(replies[n]) <= maxReplyBytes) {
			bytes += size(replies[n])
			n++
		}
		response := newEncoded(bytes)
		for _, reply := range replies[:n] {
			if err := response.append(reply); err != nil {
				return err
			}
		}
		if err := x.stream.SendMsg(&response); err != nil {
			return err
		}
		replies = replies[n:]
	}
	return nil
}

// notify leaves a note in a channel that has room for one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
