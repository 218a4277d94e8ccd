package service

import (
	"context"
	"errors"
	"sync"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// formatted is a request that names a format: that of a series, or a template.
type formatted interface {
	GetDatabase() string
	GetSeries() string
	GetFormat() string
}

// format returns the requested format. A series' format is the cluster's, for a node may know an
// old one. A template has no owner: it needs the right to read, to generate or to take numbers
// of anything in the database.
func (n *numbers) format(ctx context.Context, req formatted) (f *format.Format, err error) {
	if (req.GetSeries() == "") == (req.GetFormat() == "") {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "series", "give either a series or a format")
	}
	if req.GetSeries() != "" {
		_, err = n.readSeries(ctx, &idnodev1.VerifySeriesRequest{Database: req.GetDatabase(), Series: req.GetSeries()},
			func(_ fsm.NamedSeries, s *series.Series) { f = s.Format() })
		return f, err
	}
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if n.RightsWithin(ctx, database)&(rights.Read|rights.Generate|rights.Number) == 0 {
		if err = n.Authorize(ctx, rights.Read, database, ""); err != nil {
			return nil, err
		} // The roles have changed meanwhile.
	}
	return n.template(ctx, req.GetFormat())
}

// template returns the format of a template. Parsing it takes a turn.
func (n *numbers) template(ctx context.Context, template string) (*format.Format, error) {
	d, known := n.templates.known(template)
	if !known {
		end, err := n.AwaitTurn(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		d = n.templates.define(template)
	}
	switch {
	case d.err != nil:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "format", "%v", d.err)
	case d.format.Scrambled():
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "format", "has a scrambled number, which depends on a series")
	}
	return d.format, nil
}

// templates keeps what templates mean: callers ask with the same few again and again.
type templates struct {
	mu   sync.Mutex
	kept map[string]defined
}

// defined is what came of a template.
type defined struct {
	format *format.Format
	err    error
}

// maxTemplates bounds the cache: beyond it all start again. A template takes some kilobytes.
const maxTemplates = 256

// known returns what is kept of a template.
func (t *templates) known(template string) (defined, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.kept[template]
	return d, ok
}

// define parses a template without scopes, which concern only what a number's text shows.
func (t *templates) define(template string) (d defined) {
	d.format, d.err = format.Define(template, format.ResetNever)
	if len(template) > format.MaxTemplateBytes {
		return d // What is kept is short.
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil || len(t.kept) >= maxTemplates {
		t.kept = map[string]defined{}
	}
	t.kept[template] = d
	return d
}

// FormatNumber returns the text of a number. It takes nothing.
func (n *numbers) FormatNumber(ctx context.Context, req *idnodev1.FormatNumberRequest) (*idnodev1.FormatNumberResponse, error) {
	return admission.Call(ctx, n.Control, "FormatNumber", req, n.formatNumber)
}

func (n *numbers) formatNumber(ctx context.Context, req *idnodev1.FormatNumberRequest) (*idnodev1.FormatNumberResponse, error) {
	f, err := n.format(ctx, req)
	if err != nil {
		return nil, err
	}
	values, err := inOrder(f.Names(), req.GetValues())
	if err != nil {
		return nil, err
	}
	date := format.FirstDate
	if req.GetDate() != "" || f.Dated() {
		if date, err = format.ParseDate(req.GetDate()); err != nil {
			return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "date", "%v", err)
		}
	}
	text, err := f.Format(date, values, req.GetNumber())
	var full *format.FullError
	switch {
	case errors.As(err, &full):
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "number", "%v", err)
	case err != nil:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, fieldOf(err), "%v", err)
	}
	return &idnodev1.FormatNumberResponse{Text: text}, nil
}

// fieldOf returns the field of a request that an error of package format is about.
func fieldOf(err error) string {
	var bad *format.Error
	if errors.As(err, &bad) && bad.Field != "scope" {
		return bad.Field
	}
	return "values"
}

// ParseNumber parses a text. It does not look up whether the number was taken.
func (n *numbers) ParseNumber(ctx context.Context, req *idnodev1.ParseNumberRequest) (*idnodev1.ParseNumberResponse, error) {
	return admission.Call(ctx, n.Control, "ParseNumber", req, n.parseNumber)
}

func (n *numbers) parseNumber(ctx context.Context, req *idnodev1.ParseNumberRequest) (*idnodev1.ParseNumberResponse, error) {
	f, err := n.format(ctx, req)
	if err != nil {
		return nil, err
	}
	parsed, err := f.Parse(req.GetText())
	if err != nil {
		return &idnodev1.ParseNumberResponse{Detail: err.Error()}, nil
	}
	return &idnodev1.ParseNumberResponse{Valid: true, Scope: parsed.Scope, Number: parsed.Number}, nil
}
