package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// reconciled is what the audit log says of numbers that the books answered for.
type reconciled struct {
	Scope       []string `json:"scope"`
	Numbers     int      `json:"numbers"`
	FirstNumber int64    `json:"first_number"`
	// WithoutDocument counts those that are voided.
	WithoutDocument int `json:"without_document"`
}

// ReconcileNumbers confirms unknown numbers whose documents the books have, and voids the
// others, all or none. It may be repeated.
func (n *numbers) ReconcileNumbers(ctx context.Context, req *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	return call(ctx, n.calls, "ReconcileNumbers", req, n.reconcileNumbers)
}

func (n *numbers) reconcileNumbers(ctx context.Context, req *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	after := reconciled{Scope: req.GetScope(), Numbers: len(req.GetNumbers())}
	size, numbers := 0, make([]series.Bound, len(req.GetNumbers()))
	for i, b := range req.GetNumbers() {
		numbers[i] = series.Bound{Key: b.GetKey(), Number: b.GetNumber()}
		size += len(b.GetKey())
		if b.GetKey() == "" {
			after.WithoutDocument++
		}
	}
	if err := checkSeriesSize("numbers", len(numbers), size); err != nil {
		return nil, err
	}
	after.FirstNumber = numbers[0].Number
	operation := &raftlogv1.SeriesReconcile{Name: name, Scope: req.GetScope(), Reason: req.GetReason(), Numbers: op.SeriesKeys(numbers)}
	var done op.Numbers
	err = n.recorded(ctx, audit.EventSeriesReconcile, database, name, after, func() (uint64, error) {
		done, err = n.proposeNumbers(ctx, database, operation)
		return done.LogIndex, err
	})
	return &idnodev1.ReconcileNumbersResponse{Numbers: numberMessages(done.Numbers), LogIndex: done.LogIndex}, err
}
