package service

import (
	"context"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/series"
)

// DefineSeriesResponse says what a series is now.
type DefineSeriesResponse struct {
	Version  int64
	LogIndex uint64
	// Suspended means that the series gives no numbers: after a restore, one of its name may
	// have given some.
	Suspended bool
	// Preview is what the definition means. Forgets is by what this node knew.
	Preview SeriesPreview
}

// defined looks at a series that was defined. If it cannot, the outcome is unknown: the
// caller has not learned all of it, and may make the same call again.
func (n *numbers) defined(ctx context.Context, database, name string, done Value) (DefineSeriesResponse, error) {
	if n.state.AppliedIndex() < done.LogIndex {
		if err := n.linearize(ctx); err != nil {
			return DefineSeriesResponse{}, proposalError(outcome.NewUnknown(outcome.Deadline, err), true)
		}
	}
	res := DefineSeriesResponse{Version: done.Value, LogIndex: done.LogIndex}
	n.state.ReadSeries(database, name, func(s fsm.NamedSeries, _ *series.Series) { res.Suspended = s.Suspended })
	return res, nil
}
