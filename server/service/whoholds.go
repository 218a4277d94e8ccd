package service

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
)

// WhoHolds finds out who got the range that a number is in.
func (r *ranges) WhoHolds(ctx context.Context, req *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	return call(ctx, r.calls, "WhoHolds", req, r.whoHolds)
}

func (r *ranges) whoHolds(ctx context.Context, req *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	if req.GetNumber() < 1 {
		return nil, invalid(ReasonInvalidNumber, "number", "the number %d is below 1", req.GetNumber())
	}
	counter, index, err := r.readHiLo(ctx, req)
	if err != nil {
		return nil, err
	}
	res := &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED, LogIndex: index}
	at := slices.IndexFunc(counter.Outstanding, func(o hilo.Outstanding) bool { return o.Low <= req.GetNumber() && req.GetNumber() <= o.High })
	if at < 0 {
		if req.GetNumber() <= counter.Max {
			res.State = idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED
		}
		return res, nil
	}
	found := counter.Outstanding[at]
	res.State, res.Low, res.High = idnodev1.RangeState_RANGE_STATE_OUTSTANDING, found.Low, found.High
	holder := fsm.HolderOf(found)
	if holder.GetReserve() {
		res.State = idnodev1.RangeState_RANGE_STATE_RESERVED
	}
	if holder != nil {
		res.Holder = &idnodev1.RangeHolder{
			Label: holder.GetLabel(), Principal: holder.GetPrincipal(), NodeTag: holder.GetNode(),
			IssuedAt: timestamppb.New(time.Unix(holder.GetIssuedUnix(), 0)),
		}
	}
	return res, nil
}
