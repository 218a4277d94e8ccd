package webpage

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/service"
)

// seriesRow is a series in the list.
type seriesRow struct {
	Name      string `json:"name"`
	Format    string `json:"format"`
	Keys      int64  `json:"keys,string"`
	Suspended bool   `json:"suspended"`
	May       string `json:"may"`
}

func (p *Page) series(r *http.Request) (any, error) {
	return arranged(p, r, p.service.ListSeries, orders[service.SeriesInfo]{
		"keys": func(a, b service.SeriesInfo) int { return cmp.Compare(a.Keys, b.Keys) },
	}, func(s service.SeriesInfo) seriesRow {
		return seriesRow{Name: s.Name, Format: s.Definition.Format, Keys: s.Keys, Suspended: s.Suspended, May: p.may(r, s.Name)}
	})
}

// seriesRequest reads the parameters database, name and fresh.
func seriesRequest(r *http.Request) service.SeriesRequest {
	q := r.URL.Query()
	return service.SeriesRequest{Database: q.Get("database"), Series: q.Get("name"), Consistency: consistency(q)}
}

// scope is what a scope of a series has.
type scope struct {
	Scope     []string `json:"scope"`
	Closed    bool     `json:"closed"`
	Last      int64    `json:"last,string"`
	Before    int64    `json:"before,string"`
	Open      int64    `json:"open,string"`
	Overdue   int64    `json:"overdue,string"`
	Confirmed int64    `json:"confirmed,string"`
	Voided    int64    `json:"voided,string"`
	Released  int64    `json:"released,string"`
	Unknown   int64    `json:"unknown,string"`
}

// shownScopes is how many scopes of a series are seen at once.
const shownScopes = 20

// scopes lists the first scopes of a series.
func (p *Page) scopes(r *http.Request) (any, error) {
	page, err := p.service.ReportSeries(r.Context(), service.SeriesPageRequest{SeriesRequest: seriesRequest(r), PageSize: shownScopes})
	return listOf(page, func(s series.Summary) scope {
		return scope{s.Scope, s.Closed, s.Last, s.Before, s.Open, s.Overdue, s.Confirmed, s.Voided, s.Released, s.Unknown}
	}), err
}

// documentNumber is what is known of a number.
type documentNumber struct {
	Text    string `json:"text"`
	Key     string `json:"key"`
	State   string `json:"state"`
	Overdue bool   `json:"overdue"`
	Date    string `json:"date"`
	Reason  string `json:"reason"`
}

// number finds a number by its key, or else by its text.
func (p *Page) number(r *http.Request) (any, error) {
	req := service.WhoHasRequest{SeriesRequest: seriesRequest(r), Key: r.URL.Query().Get("of")}
	n, err := p.whoHas(r.Context(), req)
	var unknown *service.Error
	if errors.As(err, &unknown) && unknown.Reason == service.ReasonNumberNotFound {
		req.Key, req.Text = "", req.Key
		if byText, bad := p.whoHas(r.Context(), req); bad == nil {
			return byText, nil
		}
	}
	return n, err
}

func (p *Page) whoHas(ctx context.Context, req service.WhoHasRequest) (documentNumber, error) {
	res, err := p.service.WhoHas(ctx, req)
	return numberOf(res.Number), err
}

func numberOf(n series.Number) documentNumber {
	return documentNumber{n.Text, n.Key, n.State.String(), n.Overdue, n.Date.String(), n.Reason}
}
