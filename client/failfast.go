package client

import (
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
)

// probeEvery is the least time between two calls that are let through in an outage.
const probeEvery = time.Second

// outage is a time in which no node has answered. Its times are since epoch. It is safe for concurrent use.
type outage struct {
	// answered is when a node has answered last.
	answered atomic.Int64
	// began is when the first try or look began that failed since then; newest is when the last failed.
	began, newest atomic.Int64
	// probed is when a call was let through.
	probed atomic.Int64
}

func (o *outage) answer(now time.Duration) { o.answered.Store(int64(now)) }

// failure records that a try or a look has got no answer, which says nothing if another has got one meanwhile.
func (o *outage) failure(began, now time.Duration) {
	answered, before := o.answered.Load(), o.began.Load()
	if int64(began) <= answered {
		return
	}
	o.newest.Store(int64(now))
	if before <= answered {
		o.began.CompareAndSwap(before, int64(began))
	}
}

// lasts returns for how long tries and looks have got no answer. A time without tries is no outage.
func (o *outage) lasts(now, idle time.Duration) time.Duration {
	began, newest := time.Duration(o.began.Load()), time.Duration(o.newest.Load())
	if began <= time.Duration(o.answered.Load()) {
		return 0
	}
	if now-newest > idle {
		o.answer(newest) // Another outage may begin.
		return 0
	}
	return newest - began
}

// probe reports whether the caller may try.
func (o *outage) probe() bool {
	now, last := int64(time.Since(epoch)), o.probed.Load()
	return (last == 0 || now-last >= int64(probeEvery)) && o.probed.CompareAndSwap(last, now)
}

// tried records whether a try or a look, which began then, has got an answer of a node.
func (r *router) tried(began time.Time, answered bool) {
	switch {
	case r.cfg.FailFastAfter == 0:
	case answered:
		r.outage.answer(time.Since(epoch))
	default:
		r.outage.failure(began.Sub(epoch), time.Since(epoch))
	}
}

// mayBegin returns nil, or the error of a call that is not tried because no node has answered for
// Config.FailFastAfter. A look goes on, so that the first answer lets all calls through.
func (r *router) mayBegin() *Error {
	if r.cfg.FailFastAfter == 0 {
		return nil
	}
	lasts := r.outage.lasts(time.Since(epoch), r.cfg.TryTimeout+lookAfter)
	if lasts < r.cfg.FailFastAfter || r.outage.probe() {
		return nil
	}
	r.look(lookSoon, nil)
	text := fmt.Sprintf("no node has answered for %s, so the call was not tried", lasts.Round(time.Second))
	return &Error{Code: codes.Unavailable, Reason: reasonNoEndpoint, Message: text}
}
