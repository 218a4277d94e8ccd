package client

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// waiting is a call whose reply has not come yet.
type waiting struct {
	call *idnodev1.Call
	// done is closed when reply or err is set.
	done  chan struct{}
	reply *idnodev1.Reply
	// err is why the stream broke; sent says that the call was sent before that.
	err  error
	sent bool
}

// failure is the call's error: the one in the reply or, for a call that was sent
// into a stream that broke, one that leaves the outcome open. The stream's own
// error does not matter then.
func (w *waiting) failure() error {
	if e := w.reply.GetError(); e != nil {
		return status.FromProto(&spb.Status{Code: e.GetCode(), Message: e.GetMessage(), Details: e.GetDetails()}).Err()
	}
	if w.err == nil {
		return nil
	}
	e := *errorOf(w.err)
	switch {
	case !w.sent:
		e.Code, e.Reason = codes.Unavailable, reasonNoEndpoint
	case e.Reason != "":
		e.Code, e.Reason = codes.Unavailable, ""
	}
	return &e
}

// flow is one stream. Two goroutines work on it: send and receive.
type flow struct {
	stream exchangeStream
	cancel context.CancelFunc
	// wake has room for one: it tells send that there is something to do.
	wake chan struct{}

	mu sync.Mutex
	// queue are the calls that were not sent yet, in order of arrival.
	queue []*waiting
	// waiting are those that were, by correlation number, also when their
	// callers have left: a number is not used again before its reply came.
	waiting map[uint64]*waiting
	newest  uint64
	// err is set once the stream is of no more use.
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

// drop takes a call out of the queue. It reports false if it was sent.
func (f *flow) drop(w *waiting) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range f.queue {
		if q == w {
			f.queue = append(f.queue[:i], f.queue[i+1:]...)
			return true
		}
	}
	return false
}

// work ends with the stream.
func (f *flow) work() {
	var sender sync.WaitGroup
	sender.Go(f.send)
	f.receive()
	f.cancel()
	sender.Wait()
}

// send sends the queue until the stream breaks. It does not wait for more calls,
// but yields once, so that callers ready to run add theirs first.
func (f *flow) send() {
	for {
		select {
		case <-f.wake:
		case <-f.stream.Context().Done():
			return
		}
		runtime.Gosched()
		for calls := f.take(); len(calls) > 0; calls = f.take() {
			// The error is receive's to find.
			if f.stream.Send(&idnodev1.ExchangeRequest{Calls: calls}) != nil {
				return
			}
		}
	}
}

// take moves calls from the queue to those in flight, as many as fit into a
// message.
func (f *flow) take() []*idnodev1.Call {
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

// fail ends the stream for all.
func (f *flow) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = status.Error(codes.Unavailable, "the node ended the stream")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	for _, w := range f.waiting {
		w.err = err
		close(w.done)
	}
	for _, w := range f.queue {
		w.err = err
		close(w.done)
	}
	f.queue, f.waiting = nil, nil
}
