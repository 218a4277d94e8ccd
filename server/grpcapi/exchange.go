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

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
)

const (
	// maxCallsPerMessage bounds the errors caused by one message.
	maxCallsPerMessage = 8192
	// maxReplyBytes is where a message of replies is full. A reply is little larger than
	// service.MaxIDsBytes, so a message stays far below what clients accept.
	maxReplyBytes = 1 << 20
)

// exchange is one Exchange stream. Three kinds of goroutines work on it: the handler's, which
// reads calls; one that sends replies; and one for each call.
//
// Invariant: an admitted call is in underWay until its reply is taken to be sent, and its bytes
// are taken from the caller's budget until the reply is encoded, which is counted until it was
// sent. So the memory that a caller that does not read can take is bounded: by the budget, and
// by the errors of refused calls, which keep the stream from being read, or end it if not even
// they fit.
type exchange struct {
	server *services
	stream grpc.ServerStream
	// to is the caller's.
	to      *budget.Connection
	calls   sync.WaitGroup
	workers workers
	// wake has capacity 1 and wakes the sender; room wakes the reader when replies were taken.
	wake, room chan struct{}

	mu sync.Mutex
	// underWay holds the calls that were let in, by correlation number, with the bytes that were
	// taken for them, and most is how many they were at once. The reader alone adds to it.
	underWay map[uint64]int64
	most     int
	ready    outgoing
	// refused is how many bytes the refusals have that are ready.
	refused int
	// ended says that no reply will follow.
	ended bool
}

type outgoing struct {
	replies []*idnodev1.Reply
	// bytes were taken for the replies.
	bytes int64
	// refusals are messages of replies to calls that were not let in.
	refusals []encoded
}

// Exchange answers the calls of a stream, concurrently, until the caller sent the last or leaves.
func (s *services) Exchange(stream grpc.BidiStreamingServer[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]) error {
	x := &exchange{
		server: s, stream: stream, to: connectionOf(stream.Context()), underWay: make(map[uint64]int64),
		workers: workers{jobs: make(chan job), idle: &s.exchanges.idle}, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
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

func (x *exchange) receive() error {
	for {
		var request received
		if err := x.stream.RecvMsg(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := x.takeUp(request); err != nil {
			return err
		}
		x.awaitRoom()
	}
}

func (x *exchange) takeUp(request received) error {
	if err := certificateEnded(x.stream.Context()); err != nil {
		request.free()
		return x.server.log.refuse(apierror.Of(err))
	}
	bytes := request.size()
	if !x.to.Hold(bytes) {
		request.free()
		return x.server.log.refuse(apierror.ErrOverloaded)
	}
	defer x.to.Give(bytes)
	whole := request.whole()
	defer whole.Free()
	return x.begin(whole.ReadOnlyData())
}

// begin starts the calls of a message, as far as the bounds allow, and answers the others with
// errors. A malformed message ends the stream, as does one that exceeds the caller's budget.
func (x *exchange) begin(request []byte) error {
	calls, err := callsIn(request, maxCallsPerMessage)
	if errors.Is(err, exactproto.ErrUnknownField) {
		return x.server.log.refuse(unknownField(err))
	}
	if err != nil {
		return malformed(err)
	}
	if calls > maxCallsPerMessage {
		return x.server.log.refuse(badRequest(apierror.ReasonInvalidCount, "calls", "a message has more than 8192 calls"))
	}
	// Nothing is begun before there is room to refuse all of it.
	room := int64(calls * x.server.exchanges.refusalBytes)
	if !x.to.Hold(room) {
		return x.server.log.refuse(apierror.ErrOverloaded)
	}
	defer x.to.Give(room)
	m := &message{x: x, start: time.Now(), free: x.free(), left: calls}
	for _, v := range wire.Fields(request) {
		if err = m.begin(v.Bytes); err != nil {
			err = malformed(err)
			break // Admitted calls are made nevertheless: the stream waits for them.
		}
		m.left--
	}
	m.runBatch()
	x.refuse(m.refusals)
	x.server.log.refused(apierror.ReasonOverloaded, m.overloaded)
	x.server.log.refused(apierror.ReasonInvalidCorrelation, m.doubles)
	return err
}

func malformed(err error) error {
	return status.Errorf(codes.InvalidArgument, "the message cannot be decoded: %v", err)
}

type message struct {
	x     *exchange
	start time.Time
	// free is how many more calls the stream may have in flight, at least.
	free int64
	// left is the number of calls not begun, this call included.
	left int
	// refusals are the replies to those that were not let in, overloaded and doubles
	// how many of them were so for which reason.
	refusals            encoded
	overloaded, doubles int
	// batch are the admitted calls to make in one proposal.
	batch []*idnodev1.Call
}

// begin starts a call, or refuses it. What there is no room for is not decoded.
func (m *message) begin(encoded []byte) error {
	bytes := callBytes + int64(len(encoded))
	if m.free <= 0 || !m.x.enter(bytes) {
		correlation, err := correlationOf(encoded)
		m.refuse(correlation, m.x.server.exchanges.overloaded)
		return err
	}
	call := new(idnodev1.Call)
	if err := proto.Unmarshal(encoded, call); err != nil {
		m.x.turnAway(bytes)
		return err
	}
	if why := m.x.admit(call, bytes); why != nil {
		m.x.turnAway(bytes)
		m.refuse(call.GetCorrelation(), why)
		return nil
	}
	m.free--
	m.x.calls.Add(1)
	if batchable(call) {
		m.batch = append(m.batch, call)
		return nil
	}
	m.x.workers.run(job{message: m, call: call})
	return nil
}

func (m *message) refuse(correlation uint64, why *refusal) {
	if m.refusals.buffer == nil {
		// After one refused call most later calls are refused.
		m.refusals = newEncoded(m.left*m.x.server.exchanges.refusalBytes, m.x.to)
	}
	*m.refusals.buffer = why.appendTo(*m.refusals.buffer, correlation)
	if why == m.x.server.exchanges.overloaded {
		m.overloaded++
	} else {
		m.doubles++
	}
}

func (m *message) run(call *idnodev1.Call) {
	defer m.x.calls.Done()
	reply := m.x.server.answer(m.x.stream.Context(), call, m.start)
	m.x.ran(1)
	m.x.put(reply)
}

func (x *exchange) free() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.server.exchanges.perStream - int64(len(x.underWay))
}

// enter lets a call of so many bytes in, if there is room; turnAway takes that back.
func (x *exchange) enter(bytes int64) bool {
	if !x.server.exchanges.enter() {
		return false
	}
	if !x.to.Begin() {
		x.server.exchanges.ran(1)
		return false
	}
	if !x.to.Hold(bytes) {
		x.ran(1)
		return false
	}
	return true
}

func (x *exchange) turnAway(bytes int64) {
	x.ran(1)
	x.to.Give(bytes)
}

func (x *exchange) ran(n int) {
	x.server.exchanges.ran(n)
	for range n {
		x.to.End()
	}
}

// admit counts a call, for which bytes were taken, as in flight, or returns the reason why not.
func (x *exchange) admit(call *idnodev1.Call, bytes int64) *refusal {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, double := x.underWay[call.GetCorrelation()]; double {
		return x.server.exchanges.double
	}
	text := textBytes(call.GetGenerate())
	if text > 0 && !x.to.Hold(text) {
		return x.server.exchanges.overloaded
	}
	x.underWay[call.GetCorrelation()] = bytes + text
	x.most = max(x.most, len(x.underWay))
	return nil
}

func (x *exchange) put(replies ...*idnodev1.Reply) {
	x.mu.Lock()
	x.ready.replies = append(x.ready.replies, replies...)
	x.mu.Unlock()
	notify(x.wake)
}

func (x *exchange) refuse(refusals encoded) {
	if refusals.buffer == nil {
		return
	}
	x.mu.Lock()
	x.ready.refusals = append(x.ready.refusals, refusals)
	x.refused += len(*refusals.buffer)
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

// send sends replies until the last one, all ready ones in one message. After an error it
// continues to take them, so that no call waits for room.
func (x *exchange) send() error {
	var failed error
	for {
		out, ok := x.next()
		if !ok {
			return failed
		}
		if failed == nil {
			failed = x.sendAll(&out)
		}
		x.drop(out)
	}
}

// next waits for replies and returns them all; false says that there are no more.
func (x *exchange) next() (out outgoing, ok bool) {
	for {
		out, ended := x.takeReady()
		if some := len(out.replies) > 0 || len(out.refusals) > 0; some || ended {
			return out, some
		}
		<-x.wake
		// Calls that shared a log entry are answered in sequence in the next microseconds.
		// Goroutines that can run now run first; this does not wait for the others.
		runtime.Gosched()
	}
}

func (x *exchange) takeReady() (out outgoing, ended bool) {
	x.mu.Lock()
	out, x.ready, x.refused = x.ready, outgoing{}, 0
	for _, reply := range out.replies {
		out.bytes += x.underWay[reply.GetCorrelation()]
		delete(x.underWay, reply.GetCorrelation())
	}
	x.forget()
	ended = x.ended
	x.mu.Unlock()
	if len(out.replies) > 0 || len(out.refusals) > 0 {
		notify(x.room)
	}
	return out, ended
}

// forget lets go of a map that was large: a stream may be silent for long, and no map shrinks.
func (x *exchange) forget() {
	const kept = 512
	if x.most > kept && len(x.underWay) == 0 {
		x.underWay, x.most = make(map[uint64]int64), 0
	}
}

func (x *exchange) drop(out outgoing) {
	for _, r := range out.refusals {
		r.free()
	}
	x.to.Give(out.bytes)
}

// sendAll sends refusals and replies in as few messages as their size allows, and removes them.
func (x *exchange) sendAll(out *outgoing) error {
	for len(out.refusals) > 0 {
		r := out.refusals[0]
		out.refusals = out.refusals[1:]
		if err := x.stream.SendMsg(&r); err != nil {
			return err
		}
	}
	for len(out.replies) > 0 {
		message, err := x.encode(out)
		if err != nil {
			return err
		}
		if err := x.stream.SendMsg(&message); err != nil {
			return err
		}
	}
	return nil
}

// encode encodes as many replies of out as fit into one message. Their bytes are returned to the
// budget before the message waits for the caller to read.
func (x *exchange) encode(out *outgoing) (encoded, error) {
	n, bytes := 0, 0
	for n < len(out.replies) && (n == 0 || bytes+size(out.replies[n]) <= maxReplyBytes) {
		bytes += size(out.replies[n])
		n++
	}
	message := newEncoded(bytes, x.to)
	for i, reply := range out.replies[:n] {
		if err := message.append(reply); err != nil {
			message.free()
			return encoded{}, err
		}
		out.replies[i] = nil
	}
	out.replies = out.replies[n:]
	given := out.bytes
	if len(out.replies) > 0 {
		given = min(given, int64(bytes))
	}
	x.to.Give(given)
	out.bytes -= given
	return message, nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
