package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// scopeInBooks is what the audit log has of a scope in the books.
type scopeInBooks struct {
	// Scope is the period, where numbers begin again, and the values of the format.
	Scope []string `json:"scope"`
	// Last is the last number.
	Last int64 `json:"last"`
	// LastDate is the greatest date; empty if it was not said.
	LastDate string `json:"last_date,omitempty"`
	// Closed means that the scope was closed.
	Closed bool `json:"closed,omitempty"`
}

// ResumeSeries lets a suspended series go on.
func (n *numbers) ResumeSeries(ctx context.Context, req *idnodev1.ResumeSeriesRequest) (*idnodev1.ResumeSeriesResponse, error) {
	return call(ctx, n.calls, "ResumeSeries", req, n.resumeSeries)
}

func (n *numbers) resumeSeries(ctx context.Context, req *idnodev1.ResumeSeriesRequest) (*idnodev1.ResumeSeriesResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	resume := &raftlogv1.SeriesResume{Name: name, More: req.GetMore()}
	var books []scopeInBooks
	for _, b := range req.GetBooks() {
		in := series.InBooks{Scope: b.GetScope(), Last: b.GetLast(), DateGiven: b.GetLastDate() != "", Closed: b.GetClosed()}
		if in.DateGiven {
			if in.LastDate, err = format.ParseDate(b.GetLastDate()); err != nil {
				return nil, invalid(ReasonInvalidSeries, "books", "the last date of a scope: %v", err)
			}
		}
		resume.Books = append(resume.Books, op.SeriesInBooks(in))
		books = append(books, scopeInBooks{b.GetScope(), b.GetLast(), b.GetLastDate(), b.GetClosed()})
	}
	// The last call is not repeatable: another restore may have suspended the series since, for a
	// reason of its own.
	result, err := n.change(ctx, audit.EventSeriesResume, database, name, books, resume, req.GetMore())
	return &idnodev1.ResumeSeriesResponse{LogIndex: result.GetLogIndex()}, err
}
