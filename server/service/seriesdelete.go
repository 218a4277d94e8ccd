package service

import (
	"context"
	"errors"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// DeleteSeries deletes a series of which no number was confirmed or voided.
func (n *numbers) DeleteSeries(ctx context.Context, req *idnodev1.DeleteSeriesRequest) (*idnodev1.DeleteSeriesResponse, error) {
	return call(ctx, n.calls, "DeleteSeries", req, n.deleteSeries)
}

func (n *numbers) deleteSeries(ctx context.Context, req *idnodev1.DeleteSeriesRequest) (*idnodev1.DeleteSeriesResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetName(), "name")
	if err != nil {
		return nil, err
	}
	// Not repeatable: a series of this name and version may have begun since.
	gone := &raftlogv1.SeriesDelete{Name: name, ExpectedVersion: req.GetExpectedVersion()}
	result, err := n.change(ctx, audit.EventSeriesDelete, database, name, nil, gone, false)
	if inUse := (*Error)(nil); errors.As(err, &inUse) && inUse.Reason == ReasonSeriesInUse {
		inUse.Message += "; close its scopes if it is to give no more numbers"
	}
	return &idnodev1.DeleteSeriesResponse{LogIndex: result.GetLogIndex()}, err
}
