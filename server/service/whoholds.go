package service

import (
	"context"
	"slices"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
)

// WhoHoldsRequest names a number of a tag.
type WhoHoldsRequest struct {
	Database    string
	Tag         string
	Number      int64
	Consistency Consistency
}

// RangeState is what the cluster knows of a number of a tag.
type RangeState uint8

// The states of a number.
const (
	// RangeNotIssued: nobody has it.
	RangeNotIssued RangeState = iota
	// RangeNotRemembered: it is taken, and in no range that the state remembers.
	RangeNotRemembered
	// RangeOutstanding: it is in a range that a caller got.
	RangeOutstanding
	// RangeReserved: it is in a range that a node got for its reserve.
	RangeReserved
)

// WhoHoldsResponse says who got the range that a number is in.
type WhoHoldsResponse struct {
	State RangeState
	// Range is that of a number that is outstanding or reserved, and Holder who got it, if
	// that is Known.
	Range    hilo.Range
	Holder   fsm.RangeHolder
	Known    bool
	LogIndex uint64
}

// WhoHolds finds out who got the range that a number is in.
func (r *ranges) WhoHolds(ctx context.Context, req WhoHoldsRequest) (WhoHoldsResponse, error) {
	return call(ctx, r.calls, "WhoHolds", req, r.whoHolds)
}

func (r *ranges) whoHolds(ctx context.Context, req WhoHoldsRequest) (WhoHoldsResponse, error) {
	if req.Number < 1 {
		return WhoHoldsResponse{}, invalid(ReasonInvalidNumber, "number", "the number %d is below 1", req.Number)
	}
	counter, index, err := r.readHiLo(ctx, GetHiLoRequest{req.Database, req.Tag, req.Consistency})
	if err != nil {
		return WhoHoldsResponse{}, err
	}
	res := WhoHoldsResponse{LogIndex: index}
	at := slices.IndexFunc(counter.Outstanding, func(o hilo.Outstanding) bool { return o.Low <= req.Number && req.Number <= o.High })
	switch {
	case at >= 0:
		res.State, res.Range = RangeOutstanding, counter.Outstanding[at].Range
		if res.Holder, res.Known = fsm.HolderOf(counter.Outstanding[at]); res.Holder.Reserve {
			res.State = RangeReserved
		}
	case req.Number <= counter.Max:
		res.State = RangeNotRemembered
	}
	return res, nil
}
