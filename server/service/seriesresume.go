package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// ResumeSeriesRequest says which numbers are in the books.
type ResumeSeriesRequest struct {
	Database, Series string
	// Books is what they have of scopes.
	Books []ScopeInBooks
	// More leaves the series suspended: another call follows.
	More bool
}

// ScopeInBooks is what the books have of a scope.
type ScopeInBooks struct {
	// Scope is the period, where numbers begin again, and the values of the format.
	Scope []string `json:"scope"`
	// Last is the last number.
	Last int64 `json:"last"`
	// LastDate is the greatest date; empty if it was not said.
	LastDate string `json:"last_date,omitempty"`
	// Closed means that the scope was closed.
	Closed bool `json:"closed,omitempty"`
}

// ResumeSeries lets a suspended series go on, and returns the index of the log entry.
func (n *numbers) ResumeSeries(ctx context.Context, req ResumeSeriesRequest) (uint64, error) {
	return call(ctx, n.calls, "ResumeSeries", req, n.resumeSeries)
}

func (n *numbers) resumeSeries(ctx context.Context, req ResumeSeriesRequest) (index uint64, err error) {
	database, name, err := seriesKey(req.Database, req.Series, "series")
	if err != nil {
		return 0, err
	}
	resume := &raftlogv1.SeriesResume{Name: name, More: req.More}
	for _, b := range req.Books {
		in := series.InBooks{Scope: b.Scope, Last: b.Last, DateGiven: b.LastDate != "", Closed: b.Closed}
		if in.DateGiven {
			if in.LastDate, err = format.ParseDate(b.LastDate); err != nil {
				return 0, invalid(ReasonInvalidSeries, "books", "the last date of a scope: %v", err)
			}
		}
		resume.Books = append(resume.Books, op.SeriesInBooks(in))
	}
	err = n.recorded(ctx, audit.EventSeriesResume, database, name, req.Books, func() (uint64, error) {
		// The last call is not repeatable: another restore may have suspended the series since,
		// for a reason of its own.
		result, err := n.propose(ctx, op.Envelope{Database: database}, resume, req.More)
		index = result.GetLogIndex()
		return index, err
	})
	return index, err
}
