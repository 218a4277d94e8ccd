package grpcapi

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/calllog"
)

// batchable reports whether a call may be made in one proposal with others of its message. Next
// identities may: one log entry takes them all, and they are the most frequent calls. A call with
// a timeout of its own may be answered before the others, so it is made alone; so is one with unknown fields.
func batchable(call *idnodev1.Call) bool {
	next, ok := call.GetCall().(*idnodev1.Call_NextIdentity)
	return ok && call.GetTimeout() == nil && checkCall(call, next.NextIdentity) == nil
}

func (m *message) runBatch() {
	switch len(m.batch) {
	case 0:
	case 1:
		m.x.workers.run(job{message: m, call: m.batch[0]})
	default:
		m.x.workers.run(job{message: m, batch: m.batch})
	}
}

func (m *message) runAll(calls []*idnodev1.Call) {
	defer m.x.calls.Add(-len(calls))
	replies := m.x.server.answerBatch(m.x.stream.Context(), calls, m.start)
	m.x.ran(len(calls))
	m.x.put(replies...)
}

// answerBatch makes next identity calls in one proposal, which is part of the trace of the first
// call that has one. A panic is the answer to all of them: it is not known which call caused it.
func (s *services) answerBatch(ctx context.Context, calls []*idnodev1.Call, start time.Time) (replies []*idnodev1.Reply) {
	replies = make([]*idnodev1.Reply, len(calls))
	requests := make([]*idnodev1.NextIdentityRequest, len(calls))
	ends := make([]func(error), len(calls))
	called := ctx
	for i, call := range calls {
		replies[i] = &idnodev1.Reply{Correlation: call.GetCorrelation()}
		requests[i] = call.GetNextIdentity()
		var own context.Context
		own, ends[i] = s.span(ctx, idnodev1.IdsService_NextIdentity_FullMethodName, call)
		if called == ctx {
			called = own
		}
	}
	conclude := func(i int, err error) {
		ends[i](s.conclude(ctx, replies[i], idnodev1.IdsService_NextIdentity_FullMethodName, start, err))
	}
	defer func() {
		if p := recover(); p != nil {
			err := calllog.Panicked(ctx, s.log.logger, p)
			for i := range replies {
				conclude(i, err)
			}
		}
	}()
	responses, errs := s.NextIdentities(called, requests)
	for i, err := range errs {
		if err == nil {
			replies[i].Reply = &idnodev1.Reply_NextIdentity{NextIdentity: responses[i]}
		}
		conclude(i, err)
	}
	return replies
}

// maxIdleWorkers is how many workers all streams of a server keep for the calls to come.
const maxIdleWorkers = 2048

// workers are the goroutines that run the calls of one stream, until jobs is closed. They are reused:
// a new one has to grow its stack first, which costs as much as the rest of a small call.
type workers struct {
	jobs chan job
	// idle is that of all streams.
	idle *atomic.Int64
}

// job is one call of a message, or its batch.
type job struct {
	message *message
	call    *idnodev1.Call
	batch   []*idnodev1.Call
}

func (j job) run() {
	if j.call != nil {
		j.message.run(j.call)
		return
	}
	j.message.runAll(j.batch)
}

// run runs a job on an idle worker, or on a new one. It does not block.
func (w *workers) run(j job) {
	select {
	case w.jobs <- j:
	default:
		go w.work(j)
	}
}

func (w *workers) work(j job) {
	for ok := true; ok; {
		j.run()
		j, ok = w.next()
	}
}

// next waits for another job; false says that there is no more need to.
func (w *workers) next() (job, bool) {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdleWorkers {
		return job{}, false
	}
	j, ok := <-w.jobs
	return j, ok
}
