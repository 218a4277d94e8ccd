package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// ReconcileNumbersRequest says what the books have of unknown numbers of a scope.
type ReconcileNumbersRequest struct {
	Database, Series string
	// Scope is the period, where numbers begin again, and the values of the format.
	Scope []string
	// Numbers are 1 to 1,000 of them. One without a key is on no document.
	Numbers []series.Bound
	// Reason is that of numbers without a document; empty is "not in the books".
	Reason string
}

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
func (n *numbers) ReconcileNumbers(ctx context.Context, req ReconcileNumbersRequest) (NumbersResponse, error) {
	return call(ctx, n.calls, "ReconcileNumbers", req, n.reconcileNumbers)
}

func (n *numbers) reconcileNumbers(ctx context.Context, req ReconcileNumbersRequest) (res NumbersResponse, err error) {
	database, name, err := seriesKey(req.Database, req.Series, "series")
	if err != nil {
		return res, err
	}
	after := reconciled{Scope: req.Scope, Numbers: len(req.Numbers)}
	operation := &raftlogv1.SeriesReconcile{Name: name, Scope: req.Scope, Reason: req.Reason, Numbers: op.SeriesKeys(req.Numbers)}
	size := 0
	for _, b := range req.Numbers {
		size += len(b.Key)
		if b.Key == "" {
			after.WithoutDocument++
		}
	}
	if err := checkSeriesSize("numbers", len(req.Numbers), size); err != nil {
		return res, err
	}
	after.FirstNumber = req.Numbers[0].Number
	err = n.recorded(ctx, audit.EventSeriesReconcile, database, name, after, func() (uint64, error) {
		res, err = n.proposeNumbers(ctx, database, operation)
		return res.LogIndex, err
	})
	return res, err
}
