package service

import (
	"context"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// piecesOfPeriod is how often a part of a report looks at the series.
const piecesOfPeriod = 4

// ReportPeriod counts the numbers whose dates are in a period. A part of the report looks at 2,000 numbers
// and scopes.
func (n *numbers) ReportPeriod(ctx context.Context, req *idnodev1.ReportPeriodRequest) (*idnodev1.ReportPeriodResponse, error) {
	return admission.Call(ctx, n.Control, "ReportPeriod", req, n.reportPeriod)
}

func (n *numbers) reportPeriod(ctx context.Context, req *idnodev1.ReportPeriodRequest) (*idnodev1.ReportPeriodResponse, error) {
	from, err := boundOf(req.GetFrom(), "from", format.FirstDate)
	if err != nil {
		return nil, err
	}
	to, err := boundOf(req.GetTo(), "to", format.LastDate)
	if err != nil {
		return nil, err
	}
	if to < from {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "to", "%s is before %s", to, from)
	}
	c, at, err := partFrom(listPeriod, req, from.String(), to.String())
	if err != nil {
		return nil, err
	}
	res := &idnodev1.ReportPeriodResponse{}
	var more bool
	pieces := piecesOfPeriod
	res.LogIndex, err = n.readPieces(ctx, req, "the part", func() {}, func(s *series.Series) bool {
		var some []series.Period
		some, at, more = s.At(time.Now().UnixNano()).PeriodSome(at, from, to, verifiedAtOnce)
		for _, p := range some {
			res.Scopes = append(res.Scopes, periodMessage(p))
		}
		pieces--
		return more && pieces > 0
	})
	if more {
		res.NextPageToken = c.token(at.String())
	}
	return res, err
}

// boundOf returns a date of a request; the bound of all dates if none is given.
func boundOf(text, field string, all format.Date) (format.Date, error) {
	if text == "" {
		return all, nil
	}
	d, err := format.ParseDate(text)
	if err != nil {
		return 0, apierror.Invalid(apierror.ReasonInvalidSeries, field, "%v", err)
	}
	return d, nil
}

func periodMessage(p series.Period) *idnodev1.PeriodReport {
	m := &idnodev1.PeriodReport{
		Scope: p.Scope, First: textMessage(p.First), Last: textMessage(p.Last), Open: p.Count[series.Open], Confirmed: p.Count[series.Confirmed],
		Voided: p.Count[series.Voided], Released: p.Count[series.Released], Unknown: p.Count[series.Unknown],
	}
	for _, v := range p.Voided {
		m.VoidedRanges = append(m.VoidedRanges,
			&idnodev1.VoidedRange{First: textMessage(v.First), Last: textMessage(v.Last), Reason: v.First.GetReason()})
	}
	return m
}

func textMessage(n *raftlogv1.SeriesNumber) *idnodev1.SeriesText {
	return &idnodev1.SeriesText{Number: n.GetNumber(), Text: n.GetText()}
}
