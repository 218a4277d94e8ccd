package service

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/apierror"
)

// bills are of a shop that moved in mid-year.
func bills(change func(*idnodev1.DefineSeriesRequest)) *idnodev1.DefineSeriesRequest {
	req := &idnodev1.DefineSeriesRequest{Name: "bills", Definition: definitionMessage(series.Definition{Format: "R-{branch:3}-{number:4}"})}
	change(req)
	return req
}

// TestWhatADefinitionMeans: the texts of the first two numbers, what callers must give, and
// when numbers begin again. A dry run and a definition say the same.
func TestWhatADefinitionMeans(t *testing.T) {
	nextYear := time.Now().UTC().AddDate(1, 0, 0).Format("2006") + "-01-01"
	for name, tt := range map[string]struct {
		change func(*idnodev1.DefineSeriesRequest)
		want   *idnodev1.SeriesPreview
	}{
		"values of a width": {
			func(*idnodev1.DefineSeriesRequest) {},
			&idnodev1.SeriesPreview{Texts: []string{"R-BRA-0001", "R-BRA-0002"}, Values: []string{"branch"}},
		},
		"nothing to give": {
			func(r *idnodev1.DefineSeriesRequest) { r.Definition.Format = "{number}" }, &idnodev1.SeriesPreview{Texts: []string{"1", "2"}},
		},
		"a begin": {func(r *idnodev1.DefineSeriesRequest) {
			r.Begins = []*idnodev1.ScopeBegin{{Scope: []string{"ULM"}, First: 543}, {Scope: []string{"BER"}, First: 7}}
		}, &idnodev1.SeriesPreview{Texts: []string{"R-ULM-0543", "R-ULM-0544"}, Values: []string{"branch"}}},
		"the last number alone": {
			func(r *idnodev1.DefineSeriesRequest) {
				r.Begins = []*idnodev1.ScopeBegin{{Scope: []string{"ULM"}, First: 9999}}
			},
			&idnodev1.SeriesPreview{Texts: []string{"R-ULM-9999"}, Values: []string{"branch"}},
		},
		"a period of its own": {func(r *idnodev1.DefineSeriesRequest) {
			r.Definition = definitionMessage(series.Definition{Format: "{year}/{number}", Reset: format.ResetYear})
			r.Begins = []*idnodev1.ScopeBegin{{Scope: []string{"2024"}, First: 8}}
		}, &idnodev1.SeriesPreview{Texts: []string{"2024/8", "2024/9"}, BeginsAgain: nextYear}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newSeriesNode(t, nil)
			_, hash := n.world.State.Hash()
			req := bills(tt.change)
			req.DryRun = true
			dry, err := n.DefineSeries(t.Context(), req)
			if _, after := n.world.State.Hash(); err != nil || after != hash || dry.LogIndex != 0 || dry.Version != 1 {
				t.Errorf("%+v, %v, changed %v", dry, err, after != hash)
			}
			req.DryRun = false
			done, err := n.DefineSeries(t.Context(), req)
			if err != nil || done.LogIndex == 0 {
				t.Errorf("%+v, %v", done, err)
			}
			for _, p := range []*idnodev1.SeriesPreview{dry.Preview, done.Preview} {
				if !slices.Equal(p.Texts, tt.want.Texts) || !slices.Equal(p.Values, tt.want.Values) ||
					p.BeginsAgain != tt.want.BeginsAgain || p.Forgets != 0 {
					t.Errorf("%+v, want %+v", p, tt.want)
				}
			}
		})
	}
}

// TestADryRunRefusesWhatADefinitionWould, with the same words, and changes nothing.
func TestADryRunRefusesWhatADefinitionWould(t *testing.T) {
	n := newSeriesNode(t, nil)
	if _, err := n.DefineSeries(t.Context(), bills(func(*idnodev1.DefineSeriesRequest) {})); err != nil {
		t.Fatal(err)
	}
	ulm := &idnodev1.TakeNumbersRequest{Series: "bills", Keys: []string{"a"}, Values: map[string]string{"branch": "ULM"}}
	if _, err := n.TakeNumbers(t.Context(), ulm); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ConfirmNumbers(t.Context(), &idnodev1.ConfirmNumbersRequest{Series: "bills", Keys: bound("a")}); err != nil {
		t.Fatal(err)
	}
	_, hash := n.world.State.Hash()
	begin := func(first int64, scope ...string) func(*idnodev1.DefineSeriesRequest) {
		return func(r *idnodev1.DefineSeriesRequest) {
			r.ExpectedVersion, r.Begins = 1, []*idnodev1.ScopeBegin{{Scope: scope, First: first}}
		}
	}
	for name, tt := range map[string]struct {
		change        func(*idnodev1.DefineSeriesRequest)
		code          apierror.Code
		reason, field string
	}{
		"no format": {
			func(r *idnodev1.DefineSeriesRequest) { r.Definition.Format = "x" }, apierror.CodeAborted,
			apierror.ReasonConcurrency, "expected_version",
		},
		"no format, new": {
			func(r *idnodev1.DefineSeriesRequest) { r.Name, r.Definition.Format = "more", "x" }, apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.format",
		},
		"two texts alike": {
			func(r *idnodev1.DefineSeriesRequest) { r.Definition.Format = "{a}{b}{number}" }, apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.format",
		},
		"a later version": {
			func(r *idnodev1.DefineSeriesRequest) { r.ExpectedVersion = 7 }, apierror.CodeAborted, apierror.ReasonConcurrency,
			"expected_version",
		},
		"no such series": {
			func(r *idnodev1.DefineSeriesRequest) { r.Name, r.ExpectedVersion = "more", 7 }, apierror.CodeAborted,
			apierror.ReasonConcurrency, "expected_version",
		},
		"another format": {
			func(r *idnodev1.DefineSeriesRequest) { r.ExpectedVersion, r.Definition.Format = 1, "{number}" },
			apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "definition.format",
		},
		"a scope with some":  {begin(5, "ULM"), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "begins"},
		"a scope of none":    {begin(5, "BERLIN"), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "begins"},
		"a number of none":   {begin(10_000, "BER"), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "begins"},
		"a number below one": {begin(0, "BER"), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "begins"},
		"a name with a space": {
			func(r *idnodev1.DefineSeriesRequest) { r.Name = `a\b` }, apierror.CodeInvalidArgument,
			apierror.ReasonInvalidName, "name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := bills(tt.change)
			_, err := n.DefineSeries(t.Context(), req)
			wantError(t, err, tt.code, tt.reason, tt.field)
			req.DryRun = true
			_, dry := n.DefineSeries(t.Context(), req)
			wantError(t, dry, tt.code, tt.reason, tt.field)
			if dry.Error() != err.Error() {
				t.Errorf("%v, and without a dry run %v", dry, err)
			}
		})
	}
	if _, after := n.world.State.Hash(); after != hash {
		t.Error("the state changed")
	}
}

// TestASeriesIsUndone as long as no number is final: its format changes, its open numbers
// are forgotten, and it is deleted. Afterwards its name stays taken.
func TestASeriesIsUndone(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	ctx := t.Context()
	if _, err := n.TakeNumbers(ctx, berlin("a", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := n.AllotNumbers(ctx, &idnodev1.AllotNumbersRequest{
		Series: "invoices", Scope: []string{"2023", "BERLIN"}, Allotment: &idnodev1.Allotment{From: 11, To: 12},
	}); err != nil {
		t.Fatal(err)
	}
	other := &idnodev1.DefineSeriesRequest{
		Name: "invoices", Definition: definitionMessage(series.Definition{Format: "{till}-{number}"}),
		ExpectedVersion: 1, DryRun: true,
	}
	if res, err := n.DefineSeries(ctx, other); err != nil || res.Preview.Forgets != 2 || res.Preview.ForgetsAllotments != 1 ||
		res.Version != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	records := len(log.records)
	other.DryRun = false
	if res, err := n.DefineSeries(ctx, other); err != nil || res.Preview.Forgets != 2 || len(log.records) != records+2 {
		t.Errorf("%+v, %v, %d records", res, err, len(log.records)-records)
	}
	if _, err := n.DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: "invoices", ExpectedVersion: 1}); err == nil {
		t.Error("an older version was deleted")
	}
	if res, err := n.DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: "Invoices", ExpectedVersion: 2}); err != nil || res.LogIndex == 0 {
		t.Errorf("%v, %v", res, err)
	}
	_, err := n.DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: "invoices", ExpectedVersion: 2})
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonSeriesNotFound, "series")
	if last := log.records[len(log.records)-3]; last.Event != "series.delete" || last.Outcome != "done" || last.Name != "invoices" {
		t.Errorf("%+v", last)
	}
	other.ExpectedVersion = 0
	if _, err := n.DefineSeries(ctx, other); err != nil {
		t.Fatal(err)
	}
	if _, err := n.TakeNumbers(ctx,
		&idnodev1.TakeNumbersRequest{Series: "invoices", Keys: []string{"a"}, Values: map[string]string{"till": "7"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "invoices", Keys: bound("a"), Reason: "torn"}); err != nil {
		t.Fatal(err)
	}
	_, hash := n.world.State.Hash()
	_, err = n.DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: "invoices", ExpectedVersion: 1})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonSeriesInUse, "name")
	if !strings.Contains(err.Error(), "close its scopes") {
		t.Error(err)
	}
	if _, after := n.world.State.Hash(); after != hash {
		t.Error("the state changed")
	}
}

// TestRightsToUndo: a dry run takes the right series too, and is not in the audit log.
func TestRightsToUndo(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	n.setRoles(t, everything(),
		rights.Role{Name: "till", Principals: []string{"till"}, Grants: []rights.Grant{{Database: "*", Rights: rights.Number | rights.Read}}},
		rights.Role{Name: "books", Principals: []string{"books"}, Grants: []rights.Grant{{Database: "*", Rights: rights.Series}}})
	records := len(log.records)
	calls := map[string]func(ctx context.Context) error{
		"dry run": func(ctx context.Context) error {
			_, err := n.DefineSeries(ctx, bills(func(r *idnodev1.DefineSeriesRequest) { r.DryRun = true }))
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := n.DeleteSeries(ctx, &idnodev1.DeleteSeriesRequest{Name: "invoices", ExpectedVersion: 1})
			return err
		},
	}
	for name, call := range calls {
		wantError(t, call(as("till")), apierror.CodePermissionDenied, apierror.ReasonPermissionDenied, "")
		if err := call(as("books")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range log.records[records:] {
		if r.Event == "series.define" {
			t.Errorf("%+v", r)
		}
	}
}
