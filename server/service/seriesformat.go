package service

import (
	"context"
	"errors"
	"sync"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// FormatRequest names a format: that of a series, or a template.
type FormatRequest struct {
	Database, Series, Template string
}

// format returns what is asked for. That of a series is the cluster's, for a node may know
// an old one. A template is nobody's: it takes the right to read, to generate or to take
// numbers of anything in the database.
func (n *numbers) format(ctx context.Context, req FormatRequest) (f *format.Format, err error) {
	if (req.Series == "") == (req.Template == "") {
		return nil, invalid(ReasonInvalidSeries, "series", "give either a series or a format")
	}
	if req.Series != "" {
		_, err = n.readSeries(ctx, SeriesRequest{Database: req.Database, Series: req.Series, Consistency: Linearizable},
			func(_ SeriesInfo, s *series.Series) { f = s.Format() })
		return f, err
	}
	database, err := databaseKey(req.Database)
	if err != nil {
		return nil, err
	}
	if n.RightsWithin(ctx, database)&(rights.Read|rights.Generate|rights.Number) == 0 {
		if err = n.authorize(ctx, rights.Read, database, ""); err != nil {
			return nil, err
		} // The roles have changed meanwhile.
	}
	return n.template(ctx, req.Template)
}

// template returns the format of a template. To read one takes a turn.
func (n *numbers) template(ctx context.Context, template string) (*format.Format, error) {
	d, known := n.templates.known(template)
	if !known {
		end, err := n.turn(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		d = n.templates.define(template)
	}
	if d.err != nil {
		return nil, invalid(ReasonInvalidSeries, "format", "%v", d.err)
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

// maxTemplates bounds what is kept: beyond it all begins again. One takes some kilobytes.
const maxTemplates = 256

// known returns what is kept of a template.
func (t *templates) known(template string) (defined, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.kept[template]
	return d, ok
}

// define reads a template, without scopes: what a number's text does not show is none of
// its concern.
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

// FormatNumberRequest names a number.
type FormatNumberRequest struct {
	FormatRequest
	// Values are those of the format, by name.
	Values map[string]string
	// Date is the document's date; it may be empty if the text has none.
	Date   string
	Number int64
}

// FormatNumber returns the text of a number. It takes nothing.
func (n *numbers) FormatNumber(ctx context.Context, req FormatNumberRequest) (string, error) {
	return call(ctx, n.calls, "FormatNumber", req, n.formatNumber)
}

func (n *numbers) formatNumber(ctx context.Context, req FormatNumberRequest) (string, error) {
	f, err := n.format(ctx, req.FormatRequest)
	if err != nil {
		return "", err
	}
	values, err := inOrder(f.Names(), req.Values)
	if err != nil {
		return "", err
	}
	date := format.FirstDate
	if req.Date != "" || f.Dated() {
		if date, err = format.ParseDate(req.Date); err != nil {
			return "", invalid(ReasonInvalidSeries, "date", "%v", err)
		}
	}
	text, err := f.Format(date, values, req.Number)
	var full *format.FullError
	switch {
	case errors.As(err, &full):
		return "", invalid(ReasonInvalidSeries, "number", "%v", err)
	case err != nil:
		return "", invalid(ReasonInvalidSeries, fieldOf(err), "%v", err)
	}
	return text, nil
}

// fieldOf returns the field of a request that an error of package format is about.
func fieldOf(err error) string {
	var bad *format.Error
	if errors.As(err, &bad) && bad.Field != "scope" {
		return bad.Field
	}
	return "values"
}

// ParseNumberRequest names a text.
type ParseNumberRequest struct {
	FormatRequest
	Text string
}

// ParseNumberResponse says what a text means.
type ParseNumberResponse struct {
	// Wrong says why the text is none of the format; empty if it is one.
	Wrong  string
	Scope  []string
	Number int64
}

// ParseNumber reads a text back. Whether anybody took the number is not looked at.
func (n *numbers) ParseNumber(ctx context.Context, req ParseNumberRequest) (ParseNumberResponse, error) {
	return call(ctx, n.calls, "ParseNumber", req, n.parseNumber)
}

func (n *numbers) parseNumber(ctx context.Context, req ParseNumberRequest) (res ParseNumberResponse, err error) {
	f, err := n.format(ctx, req.FormatRequest)
	if err != nil {
		return res, err
	}
	parsed, err := f.Parse(req.Text)
	if err == nil {
		res.Number = parsed.Number
		res.Scope, err = f.Scope(parsed.Date, parsed.Values)
	}
	if err != nil {
		return ParseNumberResponse{Wrong: err.Error()}, nil
	}
	return res, nil
}
