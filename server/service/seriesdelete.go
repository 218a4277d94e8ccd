package service

import (
	"context"
	"errors"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// DeleteSeriesRequest names a series without final numbers.
type DeleteSeriesRequest struct {
	Database, Name string
	// ExpectedVersion is that of the present definition.
	ExpectedVersion int64
}

// DeleteSeries deletes a series of which no number was confirmed or voided, and returns the
// index of the log entry.
func (n *numbers) DeleteSeries(ctx context.Context, req DeleteSeriesRequest) (uint64, error) {
	return call(ctx, n.calls, "DeleteSeries", req, n.deleteSeries)
}

func (n *numbers) deleteSeries(ctx context.Context, req DeleteSeriesRequest) (index uint64, err error) {
	database, name, err := seriesKey(req.Database, req.Name, "name")
	if err != nil {
		return 0, err
	}
	err = n.recorded(ctx, audit.EventSeriesDelete, database, name, nil, func() (uint64, error) {
		// Not repeatable: a series of this name and version may have begun since.
		result, err := n.propose(ctx, op.Envelope{Database: database}, &raftlogv1.SeriesDelete{Name: name, ExpectedVersion: req.ExpectedVersion}, false)
		index = result.GetLogIndex()
		return index, err
	})
	if inUse := (*Error)(nil); errors.As(err, &inUse) && inUse.Reason == ReasonSeriesInUse {
		inUse.Message += "; close its scopes if it is to give no more numbers"
	}
	return index, err
}
