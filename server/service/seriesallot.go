package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// allotted is what the audit log has of a range that was allotted, or taken back.
type allotted struct {
	Scope    []string `json:"scope"`
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Until    string   `json:"until,omitempty"`
	Note     string   `json:"note,omitempty"`
	Withdraw bool     `json:"withdraw,omitempty"`
}

// AllotNumbers has a scope give the numbers of a range, or takes back one that gave none.
func (n *numbers) AllotNumbers(ctx context.Context, req *idnodev1.AllotNumbersRequest) (*idnodev1.AllotNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "AllotNumbers", req, n.allotNumbers)
}

func (n *numbers) allotNumbers(ctx context.Context, req *idnodev1.AllotNumbersRequest) (*idnodev1.AllotNumbersResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	a := req.GetAllotment()
	until, err := dateOf(a.GetUntil())
	switch {
	case err != nil:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "allotment.until", "%v", err)
	case a.GetGiven() != 0:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "allotment.given", "is for answers alone")
	case a.GetLeft() != 0:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "allotment.left", "is for answers alone")
	}
	allot := &raftlogv1.SeriesAllot{
		Name: name, Scope: req.GetScope(), Withdraw: req.GetWithdraw(),
		Allotment: &raftlogv1.SeriesAllotment{From: a.GetFrom(), To: a.GetTo(), Until: until, Note: a.GetNote()},
	}
	after := allotted{req.GetScope(), a.GetFrom(), a.GetTo(), a.GetUntil(), a.GetNote(), req.GetWithdraw()}
	// What was taken back cannot be so again.
	result, err := n.change(ctx, audit.EventSeriesAllot, database, name, after, allot, !req.GetWithdraw())
	return &idnodev1.AllotNumbersResponse{LogIndex: result.GetLogIndex()}, err
}
