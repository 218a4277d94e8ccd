package client

import (
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
)

// probeEvery is the least time between two calls that are let through in an outage.
const probeEvery = time.Second

// outage is a time in which no node has answered. Its times are nanoseconds since epoch; 0 is none. It is safe
// for concurrent use.
type outage struct {
	// began is when the first try or look failed, newest when the last did.
	began, newest atomic.Int64
	// probed is when a call was let through.
	probed atomic.Int64
}

// note records whether a node has answered.
func (o *outage) note(answered bool) {
	if answered {
		if o.began.Load() != 0 {
			o.began.Store(0)
		}
		return
	}
	now := int64(time.Since(epoch))
	o.newest.Store(now)
	o.began.CompareAndSwap(0, now)
}

// lasts returns how long no node has answered. A time without tries is no outage.
func (o *outage) lasts(idle time.Duration) time.Duration {
	began, now := o.began.Load(), time.Since(epoch)
	if began == 0 {
		return 0
	}
	if now-time.Duration(o.newest.Load()) > idle {
		o.began.CompareAndSwap(began, 0)
		return 0
	}
	return now - time.Duration(began)
}

// probe reports whether the caller may try.
func (o *outage) probe() bool {
	now, last := int64(time.Since(epoch)), o.probed.Load()
	return (last == 0 || now-last >= int64(probeEvery)) && o.probed.CompareAndSwap(last, now)
}

// mayBegin returns nil, or the error of a call that is not tried because no node has answered for
// Config.FailFastAfter. A look goes on, so that the first answer lets all calls through.
func (r *router) mayBegin() *Error {
	if r.cfg.FailFastAfter == 0 {
		return nil
	}
	lasts := r.outage.lasts(r.cfg.TryTimeout + lookAfter)
	if lasts < r.cfg.FailFastAfter || r.outage.probe() {
		return nil
	}
	r.look(lookSoon, nil)
	text := fmt.Sprintf("no node has answered for %s, so the call was not tried", lasts.Round(time.Second))
	return &Error{Code: codes.Unavailable, Reason: reasonNoEndpoint, Message: text}
}
