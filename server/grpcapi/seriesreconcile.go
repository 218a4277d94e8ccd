package grpcapi

import (
	"context"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/service"
)

func (s seriesServer) ReconcileNumbers(ctx context.Context, req *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	numbers := make([]series.Bound, len(req.GetNumbers()))
	for i, n := range req.GetNumbers() {
		numbers[i] = series.Bound{Key: n.GetKey(), Number: n.GetNumber()}
	}
	res, err := s.service.ReconcileNumbers(ctx, service.ReconcileNumbersRequest{
		Database: req.GetDatabase(), Series: req.GetSeries(), Scope: req.GetScope(), Numbers: numbers, Reason: req.GetReason(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &idnodev1.ReconcileNumbersResponse{Numbers: seriesNumbers(res.Numbers), LogIndex: res.LogIndex}, nil
}
