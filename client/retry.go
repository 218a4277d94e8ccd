package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// firstPause and longestPause bound the pause between two tries once every endpoint was
	// tried; it doubles from try to try.
	firstPause   = 25 * time.Millisecond
	longestPause = 400 * time.Millisecond
	// maxOverloads bounds the ErrOverloaded answers to one call: more tries would prolong
	// the overload.
	maxOverloads = 3
)

// callKind says where a call is made, and why it may be repeated.
type callKind uint8

const (
	// anywhere: any node answers the call. A lost answer leaves at most a gap in the numbers that
	// such a call takes, which is harmless.
	anywhere callKind = iota
	// reads: the cluster decides the call, as those of the following kinds, so that any node but
	// the leader would forward it. It changes nothing.
	reads
	// changes: the call has no request id. A repetition finds the change done and does nothing.
	changes
	// counts: its request id makes the call count once.
	counts
)

// tries are the tries of a call so far, and their outcome.
type tries struct {
	kind callKind
	// id is the request id; nil if the call has none. own means that the id was made for this
	// call: no other call has sent it.
	id  *idnodev1.RequestId
	own bool
	// since is the newest log index known before the first try, or the caller's.
	since uint64
	// last is the newest error, and told the error that the caller would get.
	last, told *Error
	node       *node
	made       int
	// began is when the newest try began.
	began time.Time
	// names means that the next try names since: it is a retry, or begins again.
	names bool
	// foreign counts the consecutive newest tries that found no node of the client's cluster.
	foreign   int
	overloads int
	// unknown means that a try may have taken effect.
	unknown bool
	// repeats means that the caller has made the call before: until the cluster decides the
	// call, its outcome is that of the earlier call.
	repeats bool
}

// sendFunc sends a call to a node. since is the log index known before the first try, for a retry of
// a call with a request id; else nil.
type sendFunc func(ctx context.Context, n *node, since *uint64) error

// run makes tries at changing nodes until one gives a final answer or the time is over. There is no
// context for the whole time, because a context with a timer is the most expensive part of a call,
// and most calls end with their first try, which has one of its own.
func (r *router) run(ctx context.Context, t tries, send sendFunc) error {
	end := time.Now().Add(r.cfg.Timeout)
	if err := r.mayBegin(); err != nil {
		t.begin(r.newest.Load())
		return t.fail(ctx, err)
	}
	switch {
	case r.belongs.Load() == nil, t.kind != anywhere && r.newest.Load() == 0:
		// Already the first calls shall be of one cluster, go to the leader and know a log index.
		await(ctx, end, r.look(lookAgain, nil).done)
	case t.id != nil && !r.fresh():
		// The retries shall name a recent index.
		await(ctx, end, r.look(lookAgain, nil).heard)
	}
	t.begin(r.newest.Load())
	if ctx.Err() != nil {
		return t.fail(ctx, unreachable("the cluster", ctx.Err()))
	}
	for {
		n, err := r.route(t.kind != anywhere, t.node)
		if err != nil {
			return t.fail(ctx, errorOf(err))
		}
		if err = r.try(ctx, end, n, &t, send); err == nil {
			n.trust()
			r.tried(t.began, true)
			return nil
		}
		t.note(n, errorOf(err))
		if ctx.Err() == nil {
			r.tried(t.began, t.last.Reason != "" && t.last.Reason != reasonNoEndpoint)
		}
		if ctx.Err() != nil || !time.Now().Before(end) {
			r.look(lookAgain, nil)
			return t.fail(ctx, t.told)
		}
		if t.begunTooOld() && t.renew(r.latest(ctx, end)) {
			continue
		}
		if t.last.effect() == effectRefused || t.overloads > maxOverloads || t.allForeign(r.count(), r.newest.Load() != 0) {
			return t.fail(ctx, t.told)
		}
		if t.last.Reason != reasonOverloaded {
			r.failed(n)
		}
		r.cfg.Logger.Info("idnode: a call is repeated", "node", n.address, "attempt", t.made, "error", t.last)
		if !sleep(ctx, min(t.pause(r.count()), time.Until(end))) || !time.Now().Before(end) {
			return t.fail(ctx, t.told)
		}
	}
}

// try makes one try at one node, and tells Config.Observe.
func (r *router) try(ctx context.Context, end time.Time, n *node, t *tries, send sendFunc) (err error) {
	began := time.Now()
	t.began = began
	if r.cfg.Observe != nil {
		defer func() {
			e := Event{Kind: EventTry, Node: n.address, Attempt: t.made + 1, Duration: time.Since(began)}
			if err != nil {
				e.Err = errorOf(err)
			}
			r.cfg.tell(e)
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.cfg.TryTimeout, end.Sub(began)))
	defer cancel()
	if err = r.own(ctx, n); err != nil {
		return err
	}
	if err = n.ready(ctx); err != nil {
		return err
	}
	leave := r.whenSilent(ctx, n, cancel)
	err = send(ctx, n, t.retrySince())
	if leave() && status.Code(err) == codes.Canceled {
		return n.silentError()
	}
	if err == nil {
		return nil
	}
	if e := errorOf(err); e.Reason == reasonOtherCluster {
		e.Message = n.address + ": " + e.Message
		return e
	}
	return err
}

// begin notes the log index known before the first try.
func (t *tries) begin(newest uint64) {
	t.since = newest
	switch {
	case t.id == nil:
	case t.id.RetrySince != nil:
		t.since, t.repeats = t.id.GetRetrySince(), true
	case newest > 0:
		// The first try names it too: the network may delay that try until its retry was applied
		// and forgotten.
		t.id.RetrySince = proto.Uint64(newest)
	}
}

// retrySince returns the log index that the next try of a call with a request id names, unless the
// request has it; else nil. A try that was not sent, or was refused before anything happened, is none
// that the next one repeats.
func (t *tries) retrySince() *uint64 {
	if t.id == nil || !t.names {
		return nil
	}
	return proto.Uint64(t.since)
}

// note records a failed try.
func (t *tries) note(n *node, err *Error) {
	t.node = n
	t.last = err
	// The error of a node that answered says more than that of an unreachable node.
	if t.told == nil || err.Reason != reasonNoEndpoint {
		t.told = err
	}
	t.made++
	t.foreign++
	if !err.foreign {
		t.foreign = 0
	}
	if err.Reason == reasonOverloaded {
		t.overloads++
	}
	unknown := err.OutcomeUnknown || err.effect() == effectUnknown
	t.names = t.names || unknown
	t.unknown = t.unknown || unknown && (t.kind == changes || t.kind == counts)
}

// allForeign reports whether as many tries as there are endpoints found no node of the
// client's cluster, but something else. An endpoint that does not answer may be its node. So may
// a proxy that has led to one: it may have none at present.
func (t *tries) allForeign(endpoints int, known bool) bool {
	return t.foreign >= endpoints && (t.last.Reason == reasonOtherCluster || !known)
}

// begunTooOld reports whether the named index was forgotten before the first try arrived, and
// the call may start again with a newer index: no other call has sent its request id, no try
// took effect, and a late copy of a try names the old index.
func (t *tries) begunTooOld() bool {
	return t.own && t.last.Reason == reasonExpired && !t.unknown
}

// renew starts the call again, once, with a newer index; it returns false if it cannot.
func (t *tries) renew(since uint64) bool {
	if since <= t.since {
		return false
	}
	t.own, t.node, t.since, t.told, t.names = false, nil, since, nil, true
	return true
}

// pause returns the pause before the next try: 0 while there are untried endpoints.
func (t *tries) pause(endpoints int) time.Duration {
	if t.last.Reason == reasonOverloaded {
		return max(t.last.RetryAfter, firstPause)
	}
	round := t.made - endpoints
	if round < 0 {
		return 0
	}
	d := min(firstPause<<min(round, 10), longestPause)
	return d/2 + rand.N(d)/2
}

// fail returns the error of a call that is given up because of err.
func (t *tries) fail(ctx context.Context, err *Error) error {
	e := *err
	e.OutcomeUnknown = t.unknown || t.repeats && !err.decided()
	if t.id != nil {
		e.RequestID = RequestID{ID: t.id.GetId(), Since: t.since}
	}
	if e.Reason == "" && !e.OutcomeUnknown && err.effect() == effectUnknown {
		e.Reason = reasonNoEndpoint
		if e.Code == codes.DeadlineExceeded {
			e.Reason = reasonDeadline
		}
		e.Message = "no node answered: " + e.Message
	}
	if cause := ctx.Err(); cause != nil {
		e.err = fmt.Errorf("%w: %w", cause, err)
		// A node that could not be reached until a deadline stays the reason.
		if !e.OutcomeUnknown && e.Reason == reasonNoEndpoint && (errors.Is(cause, context.Canceled) || errors.Is(err, cause)) {
			e.Code, e.Reason = codes.Canceled, reasonCanceled
			if errors.Is(cause, context.DeadlineExceeded) {
				e.Code, e.Reason = codes.DeadlineExceeded, reasonDeadline
			}
			e.Message = "the context ended before the call was sent: " + e.Message
		}
	}
	return &e
}

// sleep waits for d, and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
