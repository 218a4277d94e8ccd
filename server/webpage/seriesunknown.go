package webpage

import (
	"net/http"

	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/service"
)

// unknownNumber is the first number of a series of which nobody has said what the books have.
type unknownNumber struct {
	documentNumber
	Scope  []string `json:"scope"`
	Number int64    `json:"number,string"`
	// Left counts the unknown numbers of the scope; 0 if the series has none.
	Left int64 `json:"left,string"`
}

// unknown finds the first unknown number of a series, in the first scope that has one.
func (p *Page) unknown(r *http.Request) (any, error) {
	req := service.SeriesPageRequest{SeriesRequest: seriesRequest(r), PageSize: service.MaxPageSize}
	for {
		page, err := p.service.ReportSeries(r.Context(), req)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Items {
			if s.Unknown > 0 {
				return p.firstUnknown(r, s)
			}
		}
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			return unknownNumber{}, nil
		}
	}
}

func (p *Page) firstUnknown(r *http.Request, s series.Summary) (any, error) {
	req := service.SeriesPageRequest{SeriesRequest: seriesRequest(r), Scope: s.Scope, State: series.Unknown, PageSize: 1}
	for {
		page, err := p.service.ListNumbers(r.Context(), req)
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 {
			n := page.Items[0]
			return unknownNumber{documentNumber: numberOf(n), Scope: n.Scope, Number: n.Number, Left: s.Unknown}, nil
		}
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			return unknownNumber{}, nil // Somebody else has just said it.
		}
	}
}

type reconcileRequest struct {
	request
	Name   string   `json:"name"`
	Scope  []string `json:"scope"`
	Number int64    `json:"number,string"`
	// Key is the document that has the number; empty if none has.
	Key string `json:"key"`
}

// reconcile says what the books have of one number.
func (p *Page) reconcile(r *http.Request, body reconcileRequest) (any, error) {
	res, err := p.service.ReconcileNumbers(r.Context(), service.ReconcileNumbersRequest{
		Database: body.Database, Series: body.Name, Scope: body.Scope, Numbers: []series.Bound{{Key: body.Key, Number: body.Number}},
	})
	if err != nil {
		return nil, err
	}
	return numberOf(res.Numbers[0]), nil
}
