package harness

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

// StreamLoad makes calls over Exchange streams, many in each message, and notes
// how each ended and how long it took.
//
// It shares the machine with the nodes it measures, so it does little: messages
// can be encoded once and sent again, and of the replies only the correlation
// number and the error are looked at.
type StreamLoad struct {
	// Nodes get Streams streams each.
	Nodes   []*Node
	Streams int
	// Batch is how many calls a message has, InFlight how many messages of a
	// stream may be without some of their replies.
	Batch, InFlight int
	// Every is the time between two messages of a stream; 0 sends the next as soon
	// as fewer than InFlight are in flight.
	Every time.Duration
	// Messages is how many messages all streams send together, Duration how long
	// they do; 0 of either is no bound. Until, if set, ends it when it is true.
	Messages int
	Duration time.Duration
	Until    func() bool
	// Call makes the call with this number. With Repeat the first InFlight
	// messages of each stream are sent again and again.
	Call   func(i int) *idnodev1.Call
	Repeat bool
}

// StreamStats is the outcome of a load.
type StreamStats struct {
	// Sent is how many calls were sent, OK how many succeeded; Refused counts the
	// others by reason.
	Sent, OK int
	Refused  map[string]int
	// Took is the time from the first call to the last reply.
	Took time.Duration
	// Samples hold when replies came, and how long they took.
	Samples []StreamSample
}

// StreamSample is some replies of one message that came together.
type StreamSample struct {
	// At is when they came, Took the time since their message was handed to the
	// connection: what a caller waits before that, because the node does not read
	// for the moment, is its own to see and to bound.
	At   time.Time
	Took time.Duration
	// Calls is how many there are; OK says that they succeeded.
	Calls int
	OK    bool
}

// Run puts the load on. Its error is that of a stream.
func (l StreamLoad) Run(ctx context.Context) (StreamStats, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := &streamRun{load: l, begin: time.Now()}
	if l.Duration > 0 {
		run.end = run.begin.Add(l.Duration)
	}
	var sources []*streamSource
	for _, n := range l.Nodes {
		for range l.Streams {
			s, err := newStreamSource(ctx, run, n, len(sources))
			if err != nil {
				return StreamStats{}, err
			}
			sources = append(sources, s)
		}
	}
	var work sync.WaitGroup
	for _, s := range sources {
		work.Go(func() { s.sendErr = s.send() })
		work.Go(func() { s.receiveErr = s.receive() })
	}
	work.Wait()
	all := StreamStats{Took: time.Since(run.begin), Refused: make(map[string]int)}
	var failed error
	for _, s := range sources {
		all.add(&s.figures)
		failed = errors.Join(failed, s.sendErr, s.receiveErr)
	}
	return all, failed
}

func (f *StreamStats) add(g *StreamStats) {
	f.Sent += g.Sent
	f.OK += g.OK
	for reason, n := range g.Refused {
		f.Refused[reason] += n
	}
	f.Samples = append(f.Samples, g.Samples...)
}

// streamRun is what the streams of a load share.
type streamRun struct {
	load       StreamLoad
	begin, end time.Time
	mu         sync.Mutex
	messages   int
}

// next returns the number of the next message; false says that there is none.
func (r *streamRun) next() (int, bool) {
	if !r.end.IsZero() && time.Now().After(r.end) || r.load.Until != nil && r.load.Until() {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load.Messages > 0 && r.messages == r.load.Messages {
		return 0, false
	}
	r.messages++
	return r.messages - 1, true
}

// streamSource is one stream of a load.
//
// Each message in flight has a slot, and its calls the correlation numbers from
// the slot's times Batch.
type streamSource struct {
	run    *streamRun
	stream grpc.ClientStream
	free   chan int
	ring   [][]byte

	mu    sync.Mutex
	slots []streamSlot

	// figures belong to receive, but for Sent, which belongs to send.
	figures             StreamStats
	reasons             map[string]string
	sendErr, receiveErr error
}

type streamSlot struct {
	sent time.Time
	left int
}

func newStreamSource(ctx context.Context, run *streamRun, n *Node, number int) (*streamSource, error) {
	desc := &grpc.StreamDesc{StreamName: "Exchange", ServerStreams: true, ClientStreams: true}
	stream, err := n.Conn.NewStream(ctx, desc, idnodev1.IdsService_Exchange_FullMethodName, grpc.ForceCodec(encoded{}))
	if err != nil {
		return nil, err
	}
	l := run.load
	s := &streamSource{
		run: run, stream: stream, free: make(chan int, l.InFlight), slots: make([]streamSlot, l.InFlight),
		figures: StreamStats{Refused: make(map[string]int)}, reasons: make(map[string]string),
	}
	for slot := range l.InFlight {
		s.free <- slot
		if l.Repeat {
			s.ring = append(s.ring, s.message(number*l.InFlight+slot, slot))
		}
	}
	return s, nil
}

// message encodes the message with a number for its slot.
func (s *streamSource) message(number, slot int) []byte {
	l := s.run.load
	req := &idnodev1.ExchangeRequest{Calls: make([]*idnodev1.Call, l.Batch)}
	for k := range l.Batch {
		req.Calls[k] = l.Call(number*l.Batch + k)
		req.Calls[k].Correlation = uint64(slot*l.Batch + k)
	}
	b, err := proto.Marshal(req)
	if err != nil {
		panic(err) // Only text that is no UTF-8 cannot be encoded.
	}
	return b
}

// send sends messages until there are no more, or the stream fails; receive then
// says why.
func (s *streamSource) send() error {
	due := time.Now()
	for {
		var slot int
		select {
		case slot = <-s.free:
		case <-s.stream.Context().Done():
			return nil
		}
		if s.run.load.Every > 0 {
			Pause(s.stream.Context(), time.Until(due))
		}
		number, ok := s.run.next()
		if !ok {
			return s.stream.CloseSend()
		}
		if err := s.sendOne(number, slot); err != nil {
			return nil
		}
		due = due.Add(s.run.load.Every)
	}
}

func (s *streamSource) sendOne(number, slot int) error {
	var message []byte
	if s.ring != nil {
		message = s.ring[slot]
	} else {
		message = s.message(number, slot)
	}
	s.mu.Lock()
	s.slots[slot] = streamSlot{sent: time.Now(), left: s.run.load.Batch}
	s.mu.Unlock()
	s.figures.Sent += s.run.load.Batch
	return s.stream.SendMsg(&message)
}

// receive takes replies until the stream ends.
func (s *streamSource) receive() error {
	for {
		var message []byte
		if err := s.stream.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.replies(message, time.Now()); err != nil {
			return err
		}
	}
}

// replies notes the replies of one message; those of one slot that come one after
// the other become one sample.
func (s *streamSource) replies(message []byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample, of := StreamSample{At: now}, -1
	for len(message) > 0 {
		_, _, head := protowire.ConsumeTag(message)
		if head < 0 {
			return protowire.ParseError(head)
		}
		reply, n := protowire.ConsumeBytes(message[head:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[head+n:]
		correlation, reason, err := s.reply(reply)
		if err != nil {
			return err
		}
		slot := int(correlation) / s.run.load.Batch
		if slot != of || (reason == "") != sample.OK {
			s.keep(sample)
			of, sample = slot, StreamSample{At: now, Took: now.Sub(s.slots[slot].sent), OK: reason == ""}
		}
		sample.Calls++
		if s.slots[slot].left--; s.slots[slot].left == 0 {
			s.free <- slot
		}
	}
	s.keep(sample)
	return nil
}

func (s *streamSource) keep(sample StreamSample) {
	if sample.Calls > 0 {
		s.figures.Samples = append(s.figures.Samples, sample)
	}
}

// reply returns the correlation number of a reply, and why the call failed.
func (s *streamSource) reply(b []byte) (correlation uint64, reason string, err error) {
	const correlationField, errorField = 1, 2
	ok := true
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, "", protowire.ParseError(n)
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return 0, "", protowire.ParseError(n)
		}
		switch field {
		case correlationField:
			correlation, _ = protowire.ConsumeVarint(b)
		case errorField:
			text, _ := protowire.ConsumeBytes(b)
			ok, reason = false, s.reason(text)
		}
		b = b[n:]
	}
	if ok {
		s.figures.OK++
	} else {
		s.figures.Refused[reason]++
	}
	return correlation, reason, nil
}

// reason returns the reason of an encoded error. Most are alike.
func (s *streamSource) reason(b []byte) string {
	if reason, known := s.reasons[string(b)]; known {
		return reason
	}
	var e spb.Status
	if err := proto.Unmarshal(b, &e); err != nil {
		return err.Error()
	}
	err := status.ErrorProto(&e)
	reason := Reason(err)
	if reason == "" {
		reason = err.Error()
	}
	s.reasons[string(b)] = reason
	return reason
}

// encoded is the codec of messages that are encoded already.
type encoded struct{}

func (encoded) Name() string                       { return "proto" }
func (encoded) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (encoded) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

// Quantile is the time that the part q of all calls took at most; 0 if there are
// none.
func Quantile(samples []StreamSample, q float64) time.Duration {
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b StreamSample) int { return cmp.Compare(a.Took, b.Took) })
	calls := 0
	for _, s := range sorted {
		calls += s.Calls
	}
	rank := int(q * float64(calls))
	for _, s := range sorted {
		if rank -= s.Calls; rank < 0 {
			return s.Took
		}
	}
	return 0
}

// CallIdentity is a call for one value of an identity.
func CallIdentity(name string) *idnodev1.Call {
	return &idnodev1.Call{Call: &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{Name: name}}}
}

// Complete runs a load of which every call must succeed. A machine that lets a node
// wait for its turn for longer than it waits for the leader leaves the outcome of
// what is in flight unknown; few may end so.
func (l StreamLoad) Complete(t testing.TB) StreamStats {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	f, err := l.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	unknown := f.Refused["OUTCOME_UNKNOWN"]
	if f.OK+unknown != f.Sent || unknown > f.Sent/100 {
		t.Fatalf("%d of %d calls succeeded; refused: %v", f.OK, f.Sent, f.Refused)
	}
	return f
}
