package webpage

import (
	"net/http"
	"slices"

	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/service"
)

// resets are the periods after which numbers begin again, as format numbers them.
var resets = []string{"never", "year", "month", "day", "week", "fiscal-year"}

type defineRequest struct {
	request
	Name   string `json:"name"`
	Format string `json:"format"`
	Reset  string `json:"reset"`
}

// of returns a definition that begins a series. The page has the most common parts of one.
func (d defineRequest) of(dryRun bool) (service.DefineSeriesRequest, error) {
	reset := slices.Index(resets, d.Reset)
	if reset < 0 {
		return service.DefineSeriesRequest{}, &problem{
			Status: http.StatusBadRequest, Reason: service.ReasonInvalidSeries, Field: "reset", Message: "there is no such period",
		}
	}
	return service.DefineSeriesRequest{
		Database: d.Database, Name: d.Name, DryRun: dryRun, Definition: series.Definition{Format: d.Format, Reset: format.Reset(reset)},
	}, nil
}

// defined is what a definition means.
type defined struct {
	Texts       []string `json:"texts"`
	Values      []string `json:"values"`
	BeginsAgain string   `json:"begins_again"`
	// Suspended means that the series gives no numbers until it is resumed.
	Suspended bool `json:"suspended"`
}

// previewSeries says what a definition would mean, before it counts.
func (p *Page) previewSeries(r *http.Request) (any, error) {
	q := r.URL.Query()
	d := defineRequest{request: request{Database: q.Get("database")}, Name: q.Get("name"), Format: q.Get("format"), Reset: q.Get("reset")}
	return p.define(r, d, true)
}

func (p *Page) defineSeries(r *http.Request, body defineRequest) (any, error) {
	return p.define(r, body, false)
}

func (p *Page) define(r *http.Request, d defineRequest, dryRun bool) (any, error) {
	req, err := d.of(dryRun)
	if err != nil {
		return nil, err
	}
	res, err := p.service.DefineSeries(r.Context(), req)
	// JSON has null for a list that is nil.
	return defined{append([]string{}, res.Preview.Texts...), append([]string{}, res.Preview.Values...), res.Preview.BeginsAgain, res.Suspended}, err
}
