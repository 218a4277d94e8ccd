package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/reserve"
)

const (
	// reserveWait and a quarter of the caller's time bound the wait for the cluster where
	// the node has numbers in reserve.
	reserveWait = 500 * time.Millisecond
	// maxAnswered bounds the remembered calls with a request id that got a range from
	// the reserve.
	maxAnswered = 16_384
)

// takeRange takes a range from the cluster, or from this node's reserve if the cluster cannot be
// reached.
func (r *ranges) takeRange(ctx context.Context, w *wantedRange) (*idnodev1.NextRangeResponse, error) {
	if r.reserves == nil {
		return r.fromCluster(ctx, w)
	}
	caller := r.Principal(ctx)
	r.answered.mu.Lock()
	before, err := r.answered.find(caller, w)
	r.answered.mu.Unlock()
	if before != nil || err != nil {
		return before, err
	}
	now := r.look(w)
	got, err := r.tryCluster(ctx, w, now)
	switch {
	case err == nil:
		if w.GetLastMax() > now.known {
			// The counter may have been lost. The state discards too, but may not get to it.
			r.reserves.Discard(w.database, w.next.GetTag(), w.GetLastMax())
		}
		r.took(ctx, w, got)
	case outOfReach(err) && ctx.Err() == nil:
		if now.fits {
			if got := r.fromReserve(caller, w); got != nil {
				r.took(ctx, w, got)
				return got, nil
			}
		}
		if now.tooLong {
			err = apierror.Unavailable(apierror.ReasonReserveTooOld,
				"the node has been cut off for too long to issue ranges of its reserve", apierror.RetryQuorum, err)
		}
	}
	return got, err
}

// reserveNow is the state of a node's reserve when the node is asked for a range.
type reserveNow struct {
	// known is the greatest number of the tag that, as far as this node has learnt, the cluster
	// issued. The leader's answers are ahead of the node's own state.
	known int64
	// fits means that there is a reserve, and that the caller can use a range of it: all its
	// numbers are known. A caller that has seen a higher number has called a node that is ahead, or
	// the counter was lost.
	fits            bool
	cutOff, tooLong bool
}

func (r *ranges) look(w *wantedRange) (now reserveNow) {
	greatest, held := r.reserves.Holds(w.database, w.next.GetTag())
	counter, _ := r.state.HiLo(w.database, w.next.GetTag())
	now.known = max(greatest, counter.Max)
	now.fits = held && w.GetLastMax() <= now.known && (w.maxHigh == 0 || now.known <= w.maxHigh)
	now.cutOff, now.tooLong = r.reserves.CutOff()
	return now
}

// tryCluster is fromCluster; a caller does not wait long where the reserve has a range.
func (r *ranges) tryCluster(ctx context.Context, w *wantedRange, now reserveNow) (*idnodev1.NextRangeResponse, error) {
	switch {
	case !now.fits:
		return r.fromCluster(ctx, w)
	case now.cutOff && !now.tooLong:
		return nil, apierror.Unavailable(apierror.ReasonNoQuorum, "no majority is in reach; nothing happened", apierror.RetryQuorum, nil)
	}
	wait := min(reserveWait, r.timeout/4)
	if end, bounded := ctx.Deadline(); bounded {
		wait = min(wait, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return r.fromCluster(ctx, w)
}

// outOfReach reports whether the reserve may replace the cluster's range. If the cluster issued a
// range nevertheless, its numbers are a gap.
func outOfReach(err error) bool {
	e, ok := errors.AsType[*apierror.Error](err)
	return ok && (e.Reason == apierror.ReasonNoQuorum || e.Reason == apierror.ReasonLeaderUnreachable ||
		e.Reason == apierror.ReasonOutcomeUnknown)
}

// fromReserve takes a range from the reserve, or finds the range that the call got before, which is
// counted. It returns nil if the reserve has no range.
func (r *ranges) fromReserve(caller string, w *wantedRange) *idnodev1.NextRangeResponse {
	r.answered.mu.Lock()
	defer r.answered.mu.Unlock()
	if before, err := r.answered.find(caller, w); before != nil || err != nil {
		return before
	}
	now, size := time.Now(), w.GetSize()
	if at := w.GetLastRangeAt(); size == 0 {
		size = hilo.NextSize(w.GetLastSize(), max(0, now.Sub(at.AsTime())), at != nil)
	}
	got, ok := r.reserves.Take(w.database, w.next.GetTag(), size)
	if !ok || w.maxHigh != 0 && got.High > w.maxHigh { // It may have been granted since.
		return nil
	}
	res := &idnodev1.NextRangeResponse{
		Prefix: rangePrefix(w.GetTag(), w.separator, r.serverPrefix), Low: got.Low, High: got.High, Size: got.Size(),
		RangeAt: timestamppb.New(now), Token: tokenText(reserve.NewToken()), FromReserve: true,
	}
	if r.serverPrefix == "" {
		res.NodeTag = w.next.GetServerTag()
	}
	r.answered.add(caller, w, res)
	w.owed = got.Size() - 1
	return res
}

func (r *ranges) took(ctx context.Context, w *wantedRange, got *idnodev1.NextRangeResponse) {
	r.reserves.Took(w.database, w.next.GetTag(), r.author(ctx), hilo.Range{Low: got.GetLow(), High: got.GetHigh()})
	if got.GetFromReserve() {
		r.events.RangeFromReserve(w.database)
	}
}

// answered remembers the newest maxAnswered calls with a request id that got a range from the
// reserve: a retry at this node gets the same range.
type answered struct {
	mu    sync.Mutex
	calls map[answeredKey]answeredCall
	// order are the keys of calls, as a ring in which the oldest is at next.
	order []answeredKey
	next  int
}

type answeredKey struct {
	caller string
	id     [16]byte
}

type answeredCall struct {
	fingerprint uint64
	response    *idnodev1.NextRangeResponse
}

// find returns the answer that a call got before, or nil. The caller holds mu.
func (a *answered) find(caller string, w *wantedRange) (*idnodev1.NextRangeResponse, error) {
	if w.key == nil {
		return nil, nil
	}
	before, known := a.calls[answeredKey{caller, w.key.Key}]
	if known && before.fingerprint != w.key.Fingerprint {
		return nil, &apierror.Error{
			Code: apierror.CodeAlreadyExists, Reason: apierror.ReasonRequestIDReused,
			Message: "the request id was used for another request",
		}
	}
	return before.response, nil
}

// add remembers an answer. The caller holds mu.
func (a *answered) add(caller string, w *wantedRange, res *idnodev1.NextRangeResponse) {
	if w.key == nil {
		return
	}
	if a.calls == nil {
		a.calls = map[answeredKey]answeredCall{}
	}
	key := answeredKey{caller, w.key.Key}
	if len(a.order) < maxAnswered {
		a.order = append(a.order, key)
	} else {
		delete(a.calls, a.order[a.next])
		a.order[a.next] = key
		a.next = (a.next + 1) % maxAnswered
	}
	a.calls[key] = answeredCall{w.key.Fingerprint, res}
}
