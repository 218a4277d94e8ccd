package peer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/raftlog"
)

// link is the connection to one member, and the stream on it that carries groups.
type link struct {
	conn   *grpc.ClientConn
	client peerv1.MemberServiceClient

	mu sync.Mutex
	// stream is the present stream, or nil; the next group replaces a broken stream.
	stream *stream
	// unanswered counts the consecutive pings without an answer.
	unanswered int
	closed     bool
}

// pinged records a ping, and returns the number of consecutive unanswered pings.
func (l *link) pinged(unanswered bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !unanswered {
		l.unanswered = 0
		return 0
	}
	l.unanswered++
	return l.unanswered
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	s := l.stream
	l.stream = nil
	l.mu.Unlock()
	_ = l.conn.Close() // Close ends all calls; nothing is to be saved.
	if s != nil {
		s.cancel()
	}
}

func (l *link) forward(ctx context.Context, group []byte, traceparent string) (raftlog.GroupResult, error) {
	s, err := l.openStream()
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	return s.forward(ctx, &pending{group: group, traceparent: traceparent, done: make(chan struct{})})
}

// openStream returns the stream, or a new stream if there is none or it broke.
func (l *link) openStream() (*stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, outcome.NewNotApplied(outcome.NotLeader, errClosed)
	}
	if l.stream == nil || l.stream.broken() {
		l.stream = newStream(l.client)
	}
	return l.stream, nil
}

// stream carries groups to one node and their answers back, in any order. It has two
// goroutines, one for each direction.
//
// Invariant: a group is answered exactly once: by its answer, or by the end of the stream.
// It is NotApplied only if it was not handed to gRPC, or if the other side said so.
type stream struct {
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{}

	mu    sync.Mutex
	queue []*pending
	sent  map[uint64]*pending
	last  uint64
	// err is set when the stream has ended.
	err error
}

// pending is a group without an answer.
type pending struct {
	group       []byte
	traceparent string
	number      uint64
	result      raftlog.GroupResult
	err         error
	done        chan struct{}
}

func newStream(client peerv1.MemberServiceClient) *stream {
	s := &stream{wake: make(chan struct{}, 1), sent: map[uint64]*pending{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run(client)
	return s
}

// run opens the stream, starts the reader, and is the writer.
func (s *stream) run(client peerv1.MemberServiceClient) {
	wire, err := client.Forward(s.ctx)
	if err != nil {
		s.fail(decode(err))
		s.cancel()
		return
	}
	go s.read(wire)
	for {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			s.fail(outcome.NewUnknown(outcome.Unspecified, context.Cause(s.ctx)))
			return
		}
		for p := s.pop(); p != nil; p = s.pop() {
			if wire.Send(&peerv1.ForwardRequest{Correlation: p.number, Group: p.group, Traceparent: p.traceparent}) != nil {
				return // read finds the cause; cancelling here would hide it.
			}
		}
	}
}

func (s *stream) read(wire grpc.BidiStreamingClient[peerv1.ForwardRequest, peerv1.ForwardResponse]) {
	defer s.cancel()
	for {
		response, err := wire.Recv()
		if err != nil {
			s.fail(decode(err))
			return
		}
		s.answered(response)
	}
}

func (s *stream) pop() *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.err != nil {
		return nil
	}
	p := s.queue[0]
	s.queue = s.queue[1:]
	s.sent[p.number] = p
	return p
}

// answered hands an answer to its call, if that still waits.
func (s *stream) answered(response *peerv1.ForwardResponse) {
	s.mu.Lock()
	p, ok := s.sent[response.GetCorrelation()]
	delete(s.sent, response.GetCorrelation())
	s.mu.Unlock()
	if ok {
		p.result, p.err = resultOf(response)
		close(p.done)
	}
}

func resultOf(response *peerv1.ForwardResponse) (raftlog.GroupResult, error) {
	reason, detail := outcome.Reason(response.GetReason()), errors.New(response.GetDetail())
	switch response.GetStatus() {
	case peerv1.ForwardResponse_STATUS_DONE:
		result, err := raftlog.GroupResultFromProto(response.GetResult())
		if err != nil {
			return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Unspecified, err)
		}
		return result, nil
	case peerv1.ForwardResponse_STATUS_NOT_APPLIED:
		return raftlog.GroupResult{}, outcome.NewNotApplied(reason, detail)
	default:
		return raftlog.GroupResult{}, outcome.NewUnknown(reason, detail)
	}
}

// fail ends the stream: groups in the queue were not sent; groups that were sent are unknown.
func (s *stream) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	queue, sent := s.queue, s.sent
	s.queue, s.sent = nil, nil
	s.mu.Unlock()
	for _, p := range queue {
		p.fail(outcome.NewNotApplied(outcome.NotLeader, err))
	}
	for _, p := range sent {
		p.fail(outcome.NewUnknown(outcome.ReasonOf(err), err))
	}
}

func (p *pending) fail(err error) {
	p.err = err
	close(p.done)
}

func (s *stream) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.ctx.Err() != nil
}

func (s *stream) forward(ctx context.Context, p *pending) (raftlog.GroupResult, error) {
	if err := s.enqueue(p); err != nil {
		return raftlog.GroupResult{}, err
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return s.leave(p, ctx.Err())
	}
}

func (s *stream) enqueue(p *pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return outcome.NewNotApplied(outcome.NotLeader, s.err)
	}
	s.last++
	p.number = s.last
	s.queue = append(s.queue, p)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// leave removes a group that was not sent: NotApplied. A group that was sent is Unknown.
func (s *stream) leave(p *pending, cause error) (raftlog.GroupResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-p.done:
		return p.result, p.err
	default:
	}
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		return raftlog.GroupResult{}, outcome.NewNotApplied(outcome.Deadline, cause)
	}
	delete(s.sent, p.number)
	return raftlog.GroupResult{}, outcome.NewUnknown(outcome.Deadline, cause)
}
