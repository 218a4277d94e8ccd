package client

import (
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// maxUnderWay bounds the calls of a stream that were sent and not answered: half of a
	// node's bound. Other calls wait here, where they can be given up.
	maxUnderWay = 2048
	// maxCallsBytes bounds a message of calls, far below a node's bound.
	maxCallsBytes = 1 << 20
)

// exchange makes one call on the node's Exchange stream. Concurrent calls share a message.
func (n *node) exchange(ctx context.Context, call *idnodev1.Call) (*idnodev1.Reply, error) {
	f, err := n.current()
	if err != nil {
		return nil, err
	}
	w := f.add(call)
	select {
	case <-w.done:
	case <-ctx.Done():
		switch {
		case f.drop(w):
			return nil, unreachable("the node", ctx.Err())
		case !closed(w.done): // A reply that has arrived counts, even if late.
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return w.reply, w.failure()
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// current returns the stream, or a new stream if the last one broke.
func (n *node) current() (*flow, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flow != nil && !n.flow.broken() {
		return n.flow, nil
	}
	ctx, cancel := context.WithCancel(n.router.ctx)
	stream, err := n.api.Exchange(n.router.named(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	f := &flow{stream: stream, cancel: cancel, wake: make(chan struct{}, 1), waiting: make(map[uint64]*waiting)}
	if err := n.router.start(f.work); err != nil {
		cancel()
		return nil, err
	}
	n.flow = f
	return f, nil
}

// callOf returns req as a call of an Exchange; nil if the method is not one of Exchange's.
// left is the caller's remaining time, above 0; usual is the time of a try.
func callOf(left, usual time.Duration, req any) *idnodev1.Call {
	call := &idnodev1.Call{}
	switch r := req.(type) {
	case *idnodev1.GenerateRequest:
		call.Call = &idnodev1.Call_Generate{Generate: r}
	case *idnodev1.NextIdentityRequest:
		call.Call = &idnodev1.Call_NextIdentity{NextIdentity: r}
	case *idnodev1.SeedIdentityRequest:
		call.Call = &idnodev1.Call_SeedIdentity{SeedIdentity: r}
	case *idnodev1.NextRangeRequest:
		call.Call = &idnodev1.Call_NextRange{NextRange: r}
	case *idnodev1.ReturnRangeRequest:
		call.Call = &idnodev1.Call_ReturnRange{ReturnRange: r}
	case *idnodev1.ClaimRequest:
		call.Call = &idnodev1.Call_Claim{Claim: r}
	case *idnodev1.ReleaseRequest:
		call.Call = &idnodev1.Call_Release{Release: r}
	default:
		return nil
	}
	// A node has its own bound; the call sets one only if the caller's is shorter.
	if left < usual/2 {
		call.Timeout = durationpb.New(left)
	}
	return call
}

// answerOf returns the answer in a reply.
func answerOf(reply *idnodev1.Reply) any {
	switch r := reply.GetReply().(type) {
	case *idnodev1.Reply_Generate:
		return r.Generate
	case *idnodev1.Reply_NextIdentity:
		return r.NextIdentity
	case *idnodev1.Reply_SeedIdentity:
		return r.SeedIdentity
	case *idnodev1.Reply_NextRange:
		return r.NextRange
	case *idnodev1.Reply_ReturnRange:
		return r.ReturnRange
	case *idnodev1.Reply_Claim:
		return r.Claim
	case *idnodev1.Reply_Release:
		return r.Release
	default:
		return nil
	}
}

// waiting is a call without a reply.
type waiting struct {
	call *idnodev1.Call
	// done is closed when reply or err is set.
	done  chan struct{}
	reply *idnodev1.Reply
	// err is why the stream broke; sent means that the call was sent before.
	err  error
	sent bool
}

// failure returns the call's error: that in the reply or, if the stream broke after the call
// was sent, an error that leaves the outcome unknown. The stream's own error does not matter
// then.
func (w *waiting) failure() error {
	if e := w.reply.GetError(); e != nil {
		return status.FromProto(&spb.Status{Code: e.GetCode(), Message: e.GetMessage(), Details: e.GetDetails()}).Err()
	}
	if w.err == nil {
		return nil
	}
	e := *errorOf(w.err)
	switch {
	case e.Reason == reasonOtherCluster, e.Reason == reasonStarting, e.Reason == reasonCertificateEnded:
		// The node refused the stream, or took no more calls of it.
	case !w.sent:
		e.Code, e.Reason = codes.Unavailable, reasonNoEndpoint
	case e.Reason != "":
		e.Code, e.Reason = codes.Unavailable, ""
	}
	return &e
}

// flow is one stream. It has two goroutines: send and receive.
type flow struct {
	stream idnodev1.IdsService_ExchangeClient
	cancel context.CancelFunc
	// wake has capacity 1; it wakes send.
	wake chan struct{}

	mu sync.Mutex
	// queue are the unsent calls, in order of arrival.
	queue []*waiting
	// waiting are the sent calls without a reply by correlation number, even if their callers
	// have left: a number is not used again before its reply arrived.
	waiting map[uint64]*waiting
	newest  uint64
	// err is set once the stream is broken.
	err error
}

func (f *flow) broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

// add puts a call into the queue.
func (f *flow) add(call *idnodev1.Call) *waiting {
	w := &waiting{call: call, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		w.err = f.err
		close(w.done)
		return w
	}
	f.newest++
	call.Correlation = f.newest
	f.queue = append(f.queue, w)
	f.poke()
	return w
}

func (f *flow) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// drop removes a call from the queue. It returns false if the call was sent.
func (f *flow) drop(w *waiting) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.queue, w)
	if i >= 0 {
		f.queue = slices.Delete(f.queue, i, i+1)
	}
	return i >= 0
}

// work runs until the stream ends.
func (f *flow) work() {
	var sender sync.WaitGroup
	sender.Go(f.send)
	f.receive()
	f.cancel()
	sender.Wait()
}

// send sends the queue until the stream breaks. It does not wait for more calls, but yields
// once, so that callers ready to run add theirs first.
func (f *flow) send() {
	for {
		select {
		case <-f.wake:
		case <-f.stream.Context().Done():
			return
		}
		runtime.Gosched()
		for calls := f.pop(); len(calls) > 0; calls = f.pop() {
			// receive gets the stream's error.
			if f.stream.Send(&idnodev1.ExchangeRequest{Calls: calls}) != nil {
				return
			}
		}
	}
}

// pop moves as many calls from the queue to waiting as fit into a message.
func (f *flow) pop() []*idnodev1.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var calls []*idnodev1.Call
	size := 0
	for len(f.queue) > len(calls) && len(f.waiting) < maxUnderWay && size < maxCallsBytes {
		w := f.queue[len(calls)]
		w.sent = true
		f.waiting[w.call.GetCorrelation()] = w
		calls = append(calls, w.call)
		size += proto.Size(w.call)
	}
	f.queue = f.queue[len(calls):]
	return calls
}

// receive hands replies to their callers until the stream breaks.
func (f *flow) receive() {
	for {
		r, err := f.stream.Recv()
		if err != nil {
			f.fail(err)
			return
		}
		f.deliver(r.GetReplies())
	}
}

func (f *flow) deliver(replies []*idnodev1.Reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range replies {
		if w := f.waiting[r.GetCorrelation()]; w != nil {
			delete(f.waiting, r.GetCorrelation())
			w.reply = r
			close(w.done)
		}
	}
	if len(f.queue) > 0 {
		f.poke()
	}
}

// fail ends the stream and all its calls, once; the first error stays.
func (f *flow) fail(err error) (news bool) {
	if errors.Is(err, io.EOF) {
		err = status.Error(codes.Unavailable, "the node ended the stream")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	for _, w := range slices.AppendSeq(f.queue, maps.Values(f.waiting)) {
		w.err = err
		close(w.done)
	}
	f.queue, f.waiting = nil, nil
	return true
}
