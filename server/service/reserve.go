package service

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/idnode/idnode/hilo"
)

const (
	// reserveWait and a quarter of the caller's time bound the wait for the cluster where
	// the node has numbers in reserve.
	reserveWait = 500 * time.Millisecond
	// maxAnswered is how many calls with a request id are remembered that got a range
	// from the reserve.
	maxAnswered = 16_384
)

// takeRange takes a range: from the cluster, or from this node's reserve if it has one and
// the cluster cannot be reached. fresh says that a reserve gave it now.
func (r *ranges) takeRange(ctx context.Context, w *wantedRange) (res NextRangeResponse, fresh bool, err error) {
	if r.reserves == nil {
		res, err = r.fromCluster(ctx, w)
		return res, false, err
	}
	caller := r.proposer.auth.caller(ctx).Principal
	if res, known, err := r.answered.again(caller, w); known {
		return res, false, err
	}
	known, _ := r.known(w)
	res, err = r.tryCluster(ctx, w)
	switch {
	case err == nil:
		if w.LastMax > known {
			// The counter may have been lost. The state says so too, but may not get to.
			r.reserves.Discard(w.database, w.next.GetTag(), w.LastMax)
		}
		r.took(ctx, w, res)
	case outOfReach(err) && ctx.Err() == nil:
		if res, fresh, ok := r.fromReserve(caller, w); ok {
			r.took(ctx, w, res)
			return res, fresh, nil
		}
		if _, tooLong := r.reserves.CutOff(); tooLong {
			err = unavailable(ReasonReserveTooOld, "the node has been cut off for so long that it gives no ranges of its reserve any more", retryQuorum, err)
		}
	}
	return res, false, err
}

// tryCluster is fromCluster; a caller does not wait long where the reserve has a range.
func (r *ranges) tryCluster(ctx context.Context, w *wantedRange) (NextRangeResponse, error) {
	if !r.fits(w) {
		return r.fromCluster(ctx, w)
	}
	if cutOff, tooLong := r.reserves.CutOff(); cutOff && !tooLong {
		return NextRangeResponse{}, unavailable(ReasonNoQuorum, "no majority is in reach; nothing happened", retryQuorum, nil)
	}
	wait := reserveWait
	if end, bounded := ctx.Deadline(); bounded {
		wait = min(wait, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return r.fromCluster(ctx, w)
}

// outOfReach says that a range may be had from the reserve. If the cluster gave one all the
// same, that one is a hole.
func outOfReach(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Reason == ReasonNoQuorum || e.Reason == ReasonOutcomeUnknown)
}

// known is the greatest number of the tag of which this node knows that the cluster gave it,
// and whether there is a reserve. The leader's answers are ahead of the node's own state.
func (r *ranges) known(w *wantedRange) (greatest int64, held bool) {
	greatest, held = r.reserves.Holds(w.database, w.next.GetTag())
	counter, _ := r.state.HiLo(w.database, w.next.GetTag())
	return max(greatest, counter.Max), held
}

// fits says that there is a reserve, and that a range of it is what the caller means: all
// its numbers are known ones. A caller that knows of a higher one that is taken has met
// another node that is ahead, or a counter that was lost.
func (r *ranges) fits(w *wantedRange) bool {
	known, held := r.known(w)
	return held && w.LastMax <= known && (w.MaxHigh == 0 || known <= w.MaxHigh)
}

// fromReserve takes a range from the reserve, or finds the one that the call got before:
// then it is not fresh.
func (r *ranges) fromReserve(caller string, w *wantedRange) (res NextRangeResponse, fresh, ok bool) {
	if !r.fits(w) {
		return res, false, false
	}
	r.answered.mu.Lock()
	defer r.answered.mu.Unlock()
	if res, known, err := r.answered.find(caller, w); known {
		return res, false, err == nil
	}
	now := time.Now()
	size := w.Size
	if size == 0 {
		size = hilo.NextSize(w.LastSize, max(0, now.Sub(w.LastRangeAt)), w.HasLastRange)
	}
	got, ok := r.reserves.Take(w.database, w.next.GetTag(), size)
	if !ok {
		return res, false, false
	}
	res = NextRangeResponse{
		Prefix: rangePrefix(w.Tag, w.separator, r.serverPrefix), Low: got.Low, High: got.High, Size: got.Size(),
		RangeAt: now.UTC(), FromReserve: true,
	}
	if r.serverPrefix == "" {
		res.NodeTag = w.next.GetServerTag()
	}
	binary.BigEndian.PutUint64(res.Token[:], newToken())
	r.answered.add(caller, w, res)
	return res, true, true
}

// took tells the reserve of a range that a caller was given.
func (r *ranges) took(ctx context.Context, w *wantedRange, res NextRangeResponse) {
	r.reserves.Took(w.database, w.next.GetTag(), r.holder(ctx), hilo.Range{Low: res.Low, High: res.High})
	if res.FromReserve {
		r.events.rangeFromReserve(w.database)
	}
}

// answered remembers the calls with a request id that got a range from the reserve, the
// newest maxAnswered of them: a retry here gets the same one.
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
	response    NextRangeResponse
}

// again is find without the lock held.
func (a *answered) again(caller string, w *wantedRange) (res NextRangeResponse, known bool, err error) {
	if w.key == nil {
		return res, false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(caller, w)
}

// find returns the answer that a call got before. The caller holds mu.
func (a *answered) find(caller string, w *wantedRange) (res NextRangeResponse, known bool, err error) {
	if w.key == nil {
		return res, false, nil
	}
	before, known := a.calls[answeredKey{caller, w.key.Key}]
	if known && before.fingerprint != w.fingerprint().sum() {
		return res, true, &Error{Code: AlreadyExists, Reason: ReasonRequestIDReused, Message: "the request id was used for another request"}
	}
	return before.response, known, nil
}

// add remembers an answer. The caller holds mu.
func (a *answered) add(caller string, w *wantedRange, res NextRangeResponse) {
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
	a.calls[key] = answeredCall{w.fingerprint().sum(), res}
}
