package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// newSeriesNode is a node of a cluster that knows series, and has one.
func newSeriesNode(t testing.TB, change func(*Config)) node {
	t.Helper()
	w := newWorld(t)
	n := newNode(t, w, change)
	_, err := n.DefineSeries(t.Context(), &idnodev1.DefineSeriesRequest{Name: "Invoices", Definition: definitionMessage(series.Definition{
		Format: "INV-{branch}-{year}-{number:6}", Reset: format.ResetYear, TimeZone: "Pacific/Auckland",
	})})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func berlin(keys ...string) *idnodev1.TakeNumbersRequest {
	return &idnodev1.TakeNumbersRequest{Series: "invoices", Keys: keys, Values: map[string]string{"branch": "BERLIN"}}
}

func bound(keys ...string) (all []*idnodev1.NumberOf) {
	for _, k := range keys {
		all = append(all, &idnodev1.NumberOf{Key: k})
	}
	return all
}

// TestAFormatWithTwoReadingsReachesNoLog: it may take the state long to find them, and
// nothing else is applied meanwhile.
func TestAFormatWithTwoReadingsReachesNoLog(t *testing.T) {
	n := newSeriesNode(t, nil)
	n.world.Set(noQuorum)
	_, err := n.DefineSeries(t.Context(),
		&idnodev1.DefineSeriesRequest{Name: "more", Definition: definitionMessage(series.Definition{Format: "{a}{b}{number}"})})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "definition.format")
}

// TestANumberFromItsBeginToItsEnd: taken, confirmed, looked for, listed and verified.
func TestANumberFromItsBeginToItsEnd(t *testing.T) {
	n := newSeriesNode(t, nil)
	ctx := t.Context()
	taken, err := n.TakeNumbers(ctx, berlin("a", "b", "c"))
	if err != nil || len(taken.Numbers) != 3 || taken.Numbers[2].Text != "INV-BERLIN-2023-000003" || taken.LogIndex == 0 {
		t.Fatalf("%+v, %v", taken, err)
	}
	again, err := n.TakeNumbers(ctx, berlin("b"))
	if err != nil || again.Numbers[0].Number != 2 {
		t.Fatalf("%+v, %v", again, err)
	}
	confirmed, err := n.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: bound("a")})
	if err != nil || confirmed.Numbers[0].State != idnodev1.NumberState_NUMBER_STATE_CONFIRMED {
		t.Errorf("%+v, %v", confirmed, err)
	}
	voided, err := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "invoices", Keys: bound("b"), Reason: "torn"})
	if err != nil || voided.Numbers[0].State != idnodev1.NumberState_NUMBER_STATE_VOIDED {
		t.Errorf("%+v, %v", voided, err)
	}
	released, err := n.ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Series: "invoices", Keys: bound("c")})
	if err != nil || released.Numbers[0].State != idnodev1.NumberState_NUMBER_STATE_VOIDED ||
		released.Numbers[0].Reason != series.ReasonReleased {
		t.Errorf("%+v, %v", released, err)
	}
	const invoices = "INVOICES"
	if got, err := n.GetSeries(ctx, &idnodev1.GetSeriesRequest{Name: invoices}); err != nil || got.Series.Name != "invoices" ||
		got.Series.Keys != 3 || got.Series.Version != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := n.ListSeries(ctx, &idnodev1.ListSeriesRequest{Prefix: "inv"}); err != nil || len(got.Series) != 1 ||
		got.Series[0].Name != "invoices" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := n.ReportSeries(ctx, &idnodev1.ReportSeriesRequest{Series: invoices}); err != nil || len(got.Scopes) != 1 ||
		got.Scopes[0].Last != 3 || got.Scopes[0].Voided != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, by := range []*idnodev1.WhoHasRequest{
		{Series: invoices, By: &idnodev1.WhoHasRequest_Key{Key: "b"}},
		{Series: invoices, By: &idnodev1.WhoHasRequest_Text{Text: "INV-BERLIN-2023-000002"}},
	} {
		if got, err := n.WhoHas(ctx, by); err != nil || got.Number.Reason != "torn" || got.Number.Key != "b" {
			t.Errorf("%+v: %+v, %v", by, got, err)
		}
	}
	if got, err := n.VerifySeries(ctx, allInvoices); err != nil || !got.Ok {
		t.Errorf("%+v, %v", got, err)
	}
	last, err := n.CloseScope(ctx, &idnodev1.CloseScopeRequest{Series: "invoices", Scope: []string{"2023", "BERLIN"}})
	if err != nil || last.Last != 3 {
		t.Errorf("%+v, %v", last, err)
	}
	_, err = n.TakeNumbers(ctx, berlin("d"))
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonScopeClosed, "values")
}

// TestTheDayOfTheZone: a caller without a date gets the day of the series' zone.
func TestTheDayOfTheZone(t *testing.T) {
	n := newSeriesNode(t, nil)
	// 22:13 UTC: in Auckland it is the next day, whichever time of the year the test runs in.
	res, err := n.TakeNumbers(t.Context(), berlin("a"))
	if err != nil || res.Numbers[0].Date != "2023-11-15" {
		t.Errorf("%+v, %v", res, err)
	}
	req := berlin("b")
	req.Date = "2023-12-31"
	if res, err = n.TakeNumbers(t.Context(), req); err != nil || res.Numbers[0].Date != "2023-12-31" {
		t.Errorf("%+v, %v", res, err)
	}
}

// wrongRequests are refused with a field, and change nothing.
type wrongRequests map[string]struct {
	do            func() error
	code          apierror.Code
	reason, field string
}

func (requests wrongRequests) run(t *testing.T, n node) {
	t.Helper()
	if _, err := n.TakeNumbers(t.Context(), berlin("a")); err != nil {
		t.Fatal(err)
	}
	_, hash := n.world.State.Hash()
	for name, tt := range requests {
		t.Run(name, func(t *testing.T) {
			err := tt.do()
			wantError(t, err, tt.code, tt.reason, tt.field)
			if conflict := new(apierror.Error); tt.reason == apierror.ReasonKeyConflict &&
				(!errors.As(err, &conflict) || conflict.Number == nil || conflict.Number.Text != "INV-BERLIN-2023-000001") {
				t.Errorf("the first answer is %+v", conflict.Number)
			}
		})
	}
	if _, after := n.world.State.Hash(); after != hash {
		t.Error("the state changed")
	}
}

func TestWrongTakes(t *testing.T) {
	n, ctx := newSeriesNode(t, nil), t.Context()
	take := func(change func(*idnodev1.TakeNumbersRequest)) func() error {
		return func() error {
			req := berlin("z")
			change(req)
			_, err := n.TakeNumbers(ctx, req)
			return err
		}
	}
	many := make([]string, series.MaxKeys+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	long := make([]string, 600)
	for i := range long {
		long[i] = fmt.Sprintf("%0128d", i)
	}
	wrongRequests{
		"no series": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Series = "" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidName, "series",
		},
		"an unknown series": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Series = "x" }), apierror.CodeNotFound, apierror.ReasonSeriesNotFound,
			"series",
		},
		"a bad database": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Database = "a b" }), apierror.CodeInvalidArgument, "INVALID_DATABASE",
			"database",
		},
		"no keys": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Keys = nil }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "keys",
		},
		"too many keys": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Keys = many }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "keys",
		},
		"too long keys": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Keys = long }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "keys",
		},
		"a key twice": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Keys = []string{"z", "z"} }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "keys",
		},
		"a value too few": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Values = nil }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "values",
		},
		"a value too many": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Values["till"] = "7" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "values",
		},
		"a wrong value": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Values["branch"] = "a-b" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "scope",
		},
		"a wrong date": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Date = "31.12.2026" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "date",
		},
		"a long label": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Label = strings.Repeat("x", 65) }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "label",
		},
		"a time below 0": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.ExpiresIn = durationpb.New(-1) }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "expires_in",
		},
		"another scope": {
			take(func(r *idnodev1.TakeNumbersRequest) { r.Keys, r.Values["branch"] = []string{"a"}, "ULM" }), apierror.CodeAlreadyExists,
			apierror.ReasonKeyConflict, "keys",
		},
	}.run(t, n)
}

func TestWrongEndsOfNumbers(t *testing.T) {
	n, ctx := newSeriesNode(t, nil), t.Context()
	confirm := func(req *idnodev1.ConfirmNumbersRequest) func() error {
		return func() error { _, err := n.ConfirmNumbers(ctx, req); return err }
	}
	wrongRequests{
		"an unknown key": {
			confirm(&idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: bound("z")}), apierror.CodeNotFound,
			apierror.ReasonNumberNotFound, "keys",
		},
		"another number": {
			confirm(&idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "a", Number: 7}}}),
			apierror.CodeAborted, apierror.ReasonConcurrency, "keys",
		},
		"no keys to end": {
			confirm(&idnodev1.ConfirmNumbersRequest{Series: "invoices"}), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "keys",
		},
		"no reason": {func() error {
			_, err := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "invoices", Keys: bound("a")})
			return err
		}, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "reason"},
		"an unknown scope": {func() error {
			_, err := n.CloseScope(ctx, &idnodev1.CloseScopeRequest{Series: "invoices", Scope: []string{"1999", "X"}})
			return err
		}, apierror.CodeNotFound, apierror.ReasonScopeNotFound, "scope"},
	}.run(t, n)
}

func TestWrongDefinitions(t *testing.T) {
	n, ctx := newSeriesNode(t, nil), t.Context()
	define := func(change func(*idnodev1.DefineSeriesRequest)) func() error {
		return func() error {
			req := &idnodev1.DefineSeriesRequest{Name: "more", Definition: definitionMessage(series.Definition{Format: "{number}"})}
			change(req)
			_, err := n.DefineSeries(ctx, req)
			return err
		}
	}
	wrongRequests{
		"no such zone": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.Definition.TimeZone = "Mars/Crater" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.time_zone",
		},
		"a zone by another name": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.Definition.TimeZone = "Europe//Berlin" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.time_zone",
		},
		"the zone of a node": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.Definition.TimeZone = "Local" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.time_zone",
		},
		"two texts alike": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.Definition.Format = "{a}{b}{number}" }), apierror.CodeInvalidArgument,
			apierror.ReasonInvalidSeries, "definition.format",
		},
		"a later version": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.ExpectedVersion = 3 }), apierror.CodeAborted,
			apierror.ReasonConcurrency, "expected_version",
		},
		"a bad name": {
			define(func(r *idnodev1.DefineSeriesRequest) { r.Name = `a\b` }), apierror.CodeInvalidArgument, apierror.ReasonInvalidName,
			"name",
		},
	}.run(t, n)
}

func TestWrongReadsOfNumbers(t *testing.T) {
	n, ctx := newSeriesNode(t, nil), t.Context()
	wrongRequests{
		"a scope to list": {func() error {
			_, err := n.ListNumbers(ctx, &idnodev1.ListNumbersRequest{Series: "invoices", Scope: []string{"1999", "X"}})
			return err
		}, apierror.CodeNotFound, apierror.ReasonScopeNotFound, "scope"},
		"a token of none": {func() error {
			_, err := n.ListNumbers(ctx, &idnodev1.ListNumbersRequest{Series: "invoices", Scope: []string{"2023", "BERLIN"}, PageToken: "eA"})
			return err
		}, apierror.CodeInvalidArgument, apierror.ReasonInvalidPageToken, "page_token"},
		"neither key nor text": {func() error {
			_, err := n.WhoHas(ctx, &idnodev1.WhoHasRequest{Series: "invoices"})
			return err
		}, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "key"},
		"a text of none": {func() error {
			_, err := n.WhoHas(ctx, &idnodev1.WhoHasRequest{Series: "invoices", By: &idnodev1.WhoHasRequest_Text{Text: "b"}})
			return err
		}, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "text"},
		"a number of none": {func() error {
			_, err := n.WhoHas(ctx, &idnodev1.WhoHasRequest{Series: "invoices", By: &idnodev1.WhoHasRequest_Text{Text: "INV-BERLIN-2023-000099"}})
			return err
		}, apierror.CodeNotFound, apierror.ReasonNumberNotFound, ""},
	}.run(t, n)
}

// TestNumbersMayBeAskedForAgain: a call whose outcome is unknown says so, and the same call
// again gives the same numbers.
func TestNumbersMayBeAskedForAgain(t *testing.T) {
	n := newSeriesNode(t, nil)
	n.world.Set(func(f *fsmtest.Faults) {
		f.Fail, f.Lost = outcome.NewUnknown(outcome.Deadline, errors.New("lost")), true
	})
	_, err := n.TakeNumbers(t.Context(), berlin("a"))
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonOutcomeUnknown, "")
	n.world.Set(func(f *fsmtest.Faults) { f.Fail, f.Lost = nil, false })
	if res, err := n.TakeNumbers(t.Context(), berlin("a")); err != nil || res.Numbers[0].Number != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestANodeThatDoesNotKnowASeries asks the cluster: it may have been defined a moment ago.
func TestANodeThatDoesNotKnowASeries(t *testing.T) {
	n := newSeriesNode(t, nil)
	n.world.Set(func(f *fsmtest.Faults) {
		name := "late"
		f.CatchUp = func() {
			if _, err := n.DefineSeries(t.Context(),
				&idnodev1.DefineSeriesRequest{Name: name, Definition: definitionMessage(series.Definition{Format: "{number}"})}); err != nil {
				t.Error(err)
			}
			name = "later still"
		}
	})
	if res, err := n.TakeNumbers(t.Context(), &idnodev1.TakeNumbersRequest{Series: "late", Keys: []string{"a"}}); err != nil ||
		res.Numbers[0].Text != "1" {
		t.Errorf("%+v, %v", res, err)
	}
	if text, err := n.FormatNumber(t.Context(),
		&idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Series{Series: "later still"}, Number: 7}); err != nil ||
		text.GetText() != "7" {
		t.Errorf("%q, %v", text, err)
	}
	// A definition that does not fit may be an old one.
	n.world.Set(func(f *fsmtest.Faults) {
		f.CatchUp = func() {
			d := series.Definition{Format: "{till}-{number}"}
			if _, err := n.DefineSeries(t.Context(),
				&idnodev1.DefineSeriesRequest{Name: "late", Definition: definitionMessage(d), ExpectedVersion: 1}); err != nil {
				t.Error(err)
			}
		}
	})
	req := &idnodev1.TakeNumbersRequest{Series: "late", Keys: []string{"b"}, Values: map[string]string{"till": "7"}}
	if res, err := n.TakeNumbers(t.Context(), req); err != nil || res.Numbers[0].Text != "7-1" {
		t.Errorf("%+v, %v", res, err)
	}
	n.world.Set(func(f *fsmtest.Faults) {
		f.CatchUp = func() {
			d := series.Definition{Format: "N{number}"}
			if _, err := n.DefineSeries(t.Context(),
				&idnodev1.DefineSeriesRequest{Name: "later still", Definition: definitionMessage(d), ExpectedVersion: 1}); err != nil {
				t.Error(err)
			}
		}
	})
	if text, err := n.FormatNumber(t.Context(),
		&idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Series{Series: "later still"}, Number: 7}); err != nil ||
		text.GetText() != "N7" {
		t.Errorf("the text in an old format: %q, %v", text, err)
	}
	n.world.Set(func(f *fsmtest.Faults) {
		f.CatchUp, f.Unreadable = nil, outcome.NewNotApplied(outcome.Unspecified, errors.New("none"))
	})
	_, err := n.TakeNumbers(t.Context(), &idnodev1.TakeNumbersRequest{Series: "later", Keys: []string{"a"}})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
}

// TestListsOfSeriesInPages: each page leads to the next, and a token to its own list alone.
func TestListsOfSeriesInPages(t *testing.T) {
	n := newSeriesNode(t, nil)
	ctx := t.Context()
	for _, branch := range []string{"A", "B", "C"} {
		for i := range 5 {
			req := &idnodev1.TakeNumbersRequest{
				Series: "invoices", Keys: []string{fmt.Sprint(branch, i)},
				Values: map[string]string{"branch": branch},
			}
			if _, err := n.TakeNumbers(ctx, req); err != nil {
				t.Fatal(err)
			}
		}
	}
	report := &idnodev1.ReportSeriesRequest{Series: "invoices", PageSize: 2}
	var scopes []string
	for {
		page, err := n.ReportSeries(ctx, report)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Scopes {
			scopes = append(scopes, c.Scope[1])
		}
		if report.PageToken = page.NextPageToken; report.PageToken == "" {
			break
		}
	}
	same(t, scopes, []string{"A", "B", "C"})
	req := &idnodev1.ListNumbersRequest{Series: "invoices", Scope: []string{"2023", "B"}, PageSize: 2}
	var keys []string
	for {
		page, err := n.ListNumbers(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.Numbers {
			keys = append(keys, i.Key)
		}
		if page.NextPageToken == "" {
			break
		}
		req.PageToken = page.NextPageToken
	}
	same(t, keys, []string{"B0", "B1", "B2", "B3", "B4"})
	for _, other := range []*idnodev1.ListNumbersRequest{
		{Series: req.Series, Scope: []string{"2023", "C"}, PageToken: req.PageToken},
		{Series: req.Series, Scope: req.Scope, State: idnodev1.NumberState_NUMBER_STATE_OPEN, PageToken: req.PageToken},
		{Series: "other", Scope: req.Scope, PageToken: req.PageToken},
	} {
		_, err := n.ListNumbers(ctx, other)
		wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidPageToken, "page_token")
	}
}

// TestRightsOnSeries: who may take numbers may not void them, and the other way around; who
// may make ids may do neither; a right on some names is one on series of these names.
func TestRightsOnSeries(t *testing.T) {
	n := newSeriesNode(t, nil)
	till := rights.Role{
		Name: "till", Principals: []string{"till"},
		Grants: []rights.Grant{{Database: "default", Name: "invoices", Rights: rights.Number}},
	}
	books := rights.Role{Name: "books", Principals: []string{"books"}, Grants: []rights.Grant{{Database: "*", Rights: rights.Series}}}
	ids := rights.Role{Name: "ids", Principals: []string{"ids"}, Grants: []rights.Grant{{Database: "*", Rights: rights.Generate}}}
	n.setRoles(t, everything(), till, books, ids)
	calls := map[string]func(ctx context.Context, name string) error{
		"take": func(ctx context.Context, name string) error {
			req := berlin("a")
			req.Series = name
			_, err := n.TakeNumbers(ctx, req)
			return err
		},
		"enter": func(ctx context.Context, name string) error {
			req := berlin("moved")
			req.Series, req.Number, req.Because = name, 400, "moved"
			_, err := n.TakeNumbers(ctx, req)
			return err
		},
		"confirm": func(ctx context.Context, name string) error {
			_, err := n.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: name, Keys: bound("a")})
			return err
		},
		"void": func(ctx context.Context, name string) error {
			_, err := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: name, Keys: bound("a"), Reason: "torn"})
			return err
		},
		"release": func(ctx context.Context, name string) error {
			_, err := n.ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Series: name, Keys: bound("a")})
			return err
		},
		"close": func(ctx context.Context, name string) error {
			_, err := n.CloseScope(ctx, &idnodev1.CloseScopeRequest{Series: name, Scope: []string{"2023", "BERLIN"}})
			return err
		},
		"allot": func(ctx context.Context, name string) error {
			_, err := n.AllotNumbers(ctx, &idnodev1.AllotNumbersRequest{
				Series: name, Scope: []string{"2023", "BERLIN"}, Allotment: &idnodev1.Allotment{From: 500, To: 600},
			})
			return err
		},
		"resume": func(ctx context.Context, name string) error {
			_, err := n.ResumeSeries(ctx, &idnodev1.ResumeSeriesRequest{Series: name})
			return err
		},
		"reconcile": func(ctx context.Context, name string) error {
			_, err := n.ReconcileNumbers(ctx,
				&idnodev1.ReconcileNumbersRequest{Series: name, Scope: []string{"2023", "BERLIN"}, Numbers: []*idnodev1.ReconciledNumber{{Number: 1}}})
			return err
		},
		"define": func(ctx context.Context, name string) error {
			_, err := n.DefineSeries(ctx,
				&idnodev1.DefineSeriesRequest{Name: name, Definition: definitionMessage(series.Definition{Format: "{number}"})})
			return err
		},
		"import": func(ctx context.Context, _ string) error {
			_, err := n.ImportSeries(ctx, &idnodev1.ImportSeriesRequest{})
			return err
		},
		"who has": func(ctx context.Context, name string) error {
			_, err := n.WhoHas(ctx, &idnodev1.WhoHasRequest{Series: name, By: &idnodev1.WhoHasRequest_Key{Key: "a"}})
			return err
		},
	}
	may := map[string][]string{
		"till invoices": {"take", "confirm"}, "till orders": nil, "ids invoices": nil,
		"books invoices": {"enter", "void", "release", "allot", "close", "resume", "reconcile", "define"},
	}
	for who, allowed := range may {
		caller, name, _ := strings.Cut(who, " ")
		for call, do := range calls {
			err := do(as(caller), name)
			denied := new(apierror.Error)
			if isDenied := errors.As(err, &denied) && denied.Code == apierror.CodePermissionDenied; isDenied == slices.Contains(allowed, call) {
				t.Errorf("%s: %s: %v", who, call, err)
			}
		}
	}
}

// TestSeriesAreInTheAuditLog: what a person answers for, and not each number.
func TestSeriesAreInTheAuditLog(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	ctx := t.Context()
	if _, err := n.TakeNumbers(ctx, berlin("a", "b")); err != nil {
		t.Fatal(err)
	}
	_, confirm := n.ConfirmNumbers(ctx, &idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: bound("a")})
	_, void := n.VoidNumbers(ctx, &idnodev1.VoidNumbersRequest{Series: "Invoices", Keys: bound("b"), Reason: "torn"})
	_, release := n.ReleaseNumbers(ctx, &idnodev1.ReleaseNumbersRequest{Series: "invoices", Keys: bound("a")})
	_, closed := n.CloseScope(ctx, &idnodev1.CloseScopeRequest{Series: "invoices", Scope: []string{"2023", "BERLIN"}})
	_, resumed := n.ResumeSeries(ctx, &idnodev1.ResumeSeriesRequest{Series: "invoices"})
	if err := errors.Join(confirm, void, closed, resumed); err != nil || release == nil {
		t.Fatal(err, release)
	}
	var events []string
	for _, r := range log.records {
		events = append(events, r.Event+" "+r.Outcome)
		if r.Name != "invoices" || r.Database != "default" {
			t.Errorf("%+v is of another series", r)
		}
	}
	same(t, events, []string{
		"series.define intended", "series.define done", "series.void intended", "series.void done",
		"series.release intended", "series.release refused", "series.close intended", "series.close done",
		"series.resume intended", "series.resume done",
	})
	after, err := json.Marshal(log.records[3].After)
	if err != nil || string(after) != `{"numbers":1,"first_key":"b","reason":"torn"}` {
		t.Errorf("%s, %v", after, err)
	}
}

// memoryAudit keeps records.
type memoryAudit struct{ records []audit.Record }

func (m *memoryAudit) Write(_ context.Context, r audit.Record) error {
	m.records = append(m.records, r)
	return nil
}

func (m *memoryAudit) Tail(context.Context, int) ([]json.RawMessage, error) { return nil, nil }

// TestVerifyGoesOnInPieces: a long series is read beside other calls, and given up when its
// caller has.
func TestVerifyGoesOnInPieces(t *testing.T) {
	n := newSeriesNode(t, nil)
	for i := range 25 {
		req := berlin()
		for j := range 1000 {
			req.Keys = append(req.Keys, fmt.Sprintf("%d-%d", i, j))
		}
		if _, err := n.TakeNumbers(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := n.VerifySeries(t.Context(), allInvoices); err != nil || !got.Ok {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := n.VerifySeries(ctx, &idnodev1.VerifySeriesRequest{Series: "invoices", Consistency: stale})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonOverloaded, "")
}

// TestRecordsThatAreTooLarge: a record that no group of the log has room for is not decoded:
// an empty number takes two bytes of it, and a hundred times as much when it is.
func TestRecordsThatAreTooLarge(t *testing.T) {
	n := newSeriesNode(t, nil)
	numbers := &raftlogv1.SeriesNumbersRecord{Name: "receipts"}
	for range 1 << 17 {
		numbers.Numbers = append(numbers.Numbers, &raftlogv1.SeriesStored{})
	}
	record, err := proto.Marshal(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: numbers}})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = n.ImportSeries(t.Context(), &idnodev1.ImportSeriesRequest{Record: record})
	runtime.ReadMemStats(&after)
	wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonQuota, "record")
	if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(len(record)) {
		t.Errorf("%d bytes for a record of %d", taken, len(record))
	}
}

// TestADefinedSeriesSaysThatItIsSuspended: where a restore has left a floor. The
// same call again says it too.
func TestADefinedSeriesSaysThatItIsSuspended(t *testing.T) {
	n := newSeriesNode(t, nil)
	define := &idnodev1.DefineSeriesRequest{Name: "receipts", Definition: definitionMessage(series.Definition{Format: "{number}"})}
	before, err := n.DefineSeries(t.Context(), define)
	if err != nil || before.Suspended || before.Version != 1 {
		t.Errorf("%+v, %v", before, err)
	}
	if _, err := n.MergeCluster(t.Context(), &idnodev1.MergeClusterRequest{Floor: 7}); err != nil {
		t.Fatal(err)
	}
	define.Name = "later"
	for range 2 {
		if after, err := n.DefineSeries(t.Context(), define); err != nil || !after.Suspended || after.Version != 1 {
			t.Errorf("%+v, %v", after, err)
		}
	}
}

// unknownSeries is a node with a series of which the numbers 1 to 3 are unknown.
func unknownSeries(t *testing.T, change func(*Config)) node {
	t.Helper()
	n := newSeriesNode(t, change)
	if _, err := n.MergeCluster(t.Context(), &idnodev1.MergeClusterRequest{Floor: 7}); err != nil {
		t.Fatal(err)
	}
	definition := series.Definition{Format: "R{year}-{number}", Reset: format.ResetYear, Order: series.OrderDates}
	if _, err := n.DefineSeries(t.Context(),
		&idnodev1.DefineSeriesRequest{Name: "receipts", Definition: definitionMessage(definition)}); err != nil {
		t.Fatal(err)
	}
	books := []*idnodev1.ScopeInBooks{{Scope: []string{"2023"}, Last: 3, LastDate: "2023-06-30"}}
	if _, err := n.ResumeSeries(t.Context(), &idnodev1.ResumeSeriesRequest{Series: "receipts", Books: books}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUnknownNumbersAreReconciled: all of a call or none, and the same again changes nothing.
// The order of dates holds against the books, and who has a number says what is known.
func TestUnknownNumbersAreReconciled(t *testing.T) {
	log := &memoryAudit{}
	n := unknownSeries(t, func(c *Config) { c.Audit = log })
	ctx := t.Context()
	req := &idnodev1.ReconcileNumbersRequest{
		Series: "Receipts", Scope: []string{"2023"},
		Numbers: []*idnodev1.ReconciledNumber{{Number: 1, Key: "a"}, {Number: 2}},
	}
	for range 2 {
		res, err := n.ReconcileNumbers(ctx, req)
		if err != nil || len(res.Numbers) != 2 || res.Numbers[0].State != idnodev1.NumberState_NUMBER_STATE_CONFIRMED ||
			res.Numbers[1].State != idnodev1.NumberState_NUMBER_STATE_VOIDED || res.Numbers[1].Reason != series.ReasonNotInBooks {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	_, hash := n.world.State.Hash()
	for field, bad := range map[string]*idnodev1.ReconcileNumbersRequest{
		"scope":   {Series: "receipts", Scope: []string{"1999"}, Numbers: []*idnodev1.ReconciledNumber{{Number: 1}}},
		"numbers": {Series: "receipts", Scope: req.Scope, Numbers: []*idnodev1.ReconciledNumber{{Number: 3, Key: "c"}, {Number: 4}}},
		"reason": {
			Series: "receipts", Scope: req.Scope, Numbers: []*idnodev1.ReconciledNumber{{Number: 3}},
			Reason: strings.Repeat("r", series.MaxReasonBytes+1),
		},
	} {
		_, err := n.ReconcileNumbers(ctx, bad)
		if wrong := new(apierror.Error); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, numbers := range map[string][]*idnodev1.ReconciledNumber{
		"none": nil,
		"too many": make([]*idnodev1.ReconciledNumber,
			series.MaxKeys+1), "too long": {{Number: 3, Key: strings.Repeat("k", MaxSeriesKeyBytes+1)}},
	} {
		_, err := n.ReconcileNumbers(ctx, &idnodev1.ReconcileNumbersRequest{Series: "receipts", Scope: req.Scope, Numbers: numbers})
		t.Run(name, func(t *testing.T) {
			wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "numbers")
		})
	}
	if _, after := n.world.State.Hash(); after != hash {
		t.Error("bad requests changed the state")
	}
	if found, err := n.WhoHas(ctx,
		&idnodev1.WhoHasRequest{Series: "receipts", By: &idnodev1.WhoHasRequest_Text{Text: "R2023-3"}}); err != nil ||
		found.Number.State != idnodev1.NumberState_NUMBER_STATE_UNKNOWN || found.Number.Key != "" {
		t.Errorf("%+v, %v", found, err)
	}
	_, err := n.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "receipts", Keys: []string{"d"}, Date: "2023-06-29"})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonDateGoesBack, "date")
	done := slices.IndexFunc(log.records, func(r audit.Record) bool { return r.Event == "series.reconcile" && r.Outcome == audit.OutcomeDone })
	if done < 0 || log.records[done].Name != "receipts" {
		t.Fatalf("the audit log has %+v", log.records)
	}
	after, err := json.Marshal(log.records[done].After)
	if want := `{"scope":["2023"],"numbers":2,"first_number":1,"without_document":1}`; err != nil || string(after) != want {
		t.Errorf("the audit log says %s, want %s", after, want)
	}
}

// TestResumeSaysWhatTheBooksHave: in parts, with dates, and in the audit log.
func TestResumeSaysWhatTheBooksHave(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	ctx := t.Context()
	if _, err := n.MergeCluster(ctx, &idnodev1.MergeClusterRequest{Floor: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.DefineSeries(ctx,
		&idnodev1.DefineSeriesRequest{
			Name: "receipts",
			Definition: definitionMessage(series.Definition{
				Format: "{year}-{number}", Reset: format.ResetYear,
				Order: series.OrderDates,
			}),
		}); err != nil {
		t.Fatal(err)
	}
	resume := func(more bool, last int64, date string) error {
		books := []*idnodev1.ScopeInBooks{{Scope: []string{"2023"}, Last: last, LastDate: date, Closed: !more}}
		_, err := n.ResumeSeries(ctx, &idnodev1.ResumeSeriesRequest{Series: "receipts", Books: books, More: more})
		return err
	}
	wantError(t, resume(false, 3, ""), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "books")
	wantError(t, resume(false, 3, "30 June"), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "books")
	if err := errors.Join(resume(true, 100_000, "2023-06-30"), resume(false, 100_007, "2023-06-30")); err != nil {
		t.Fatal(err)
	}
	page, err := n.ReportSeries(ctx, &idnodev1.ReportSeriesRequest{Series: "receipts"})
	if err != nil || page.Scopes[0].Unknown != 100_007 || !page.Scopes[0].Closed || page.Scopes[0].LastDate != "2023-06-30" {
		t.Errorf("%+v, %v", page, err)
	}
	last := log.records[len(log.records)-1]
	after, err := json.Marshal(last.After)
	if want := `[{"scope":["2023"],"last":100007,"last_date":"2023-06-30","closed":true}]`; err != nil || string(after) != want {
		t.Errorf("the audit log says %s, want %s", after, want)
	}
}

// TestDefinitionsThereAndBack: each choice of the API is one of package series, its 0 is the
// default, and one that is unknown stays so.
func TestDefinitionsThereAndBack(t *testing.T) {
	for reset := range idnodev1.SeriesReset_name {
		for order := range idnodev1.SeriesOrder_name {
			m := &idnodev1.SeriesDefinition{
				Format: "{number}", ResetBy: idnodev1.SeriesReset(reset), Order: idnodev1.SeriesOrder(order),
				OnRelease: idnodev1.SeriesOnRelease(min(order, 3)), OnExpiry: idnodev1.SeriesOnExpiry(order),
				ExpiresIn: durationpb.New(time.Hour), MaxOpen: 3, MaxKeys: 4, TimeZone: "Europe/Berlin", MaxAheadDays: proto.Int32(30),
				MaxLength: 16, Allowed: []*idnodev1.AllowedValues{{Name: "branch", Values: []string{"BERLIN"}}},
			}
			want := proto.CloneOf(m)
			want.ResetBy, want.Order = max(want.GetResetBy(), 1), max(want.GetOrder(), 1)
			want.OnRelease, want.OnExpiry = max(want.GetOnRelease(), 1), max(want.GetOnExpiry(), 1)
			if got := definitionMessage(definitionOf(m)); !proto.Equal(got, want) {
				t.Errorf("%v is %v", m, got)
			}
		}
	}
	for _, unknown := range []int32{-1, 256, 257, 1 << 30} {
		if d := definitionOf(&idnodev1.SeriesDefinition{Order: idnodev1.SeriesOrder(unknown)}); d.Order <= series.OrderOneOpen {
			t.Errorf("the order %d is %d", unknown, d.Order)
		}
	}
	d := definitionOf(&idnodev1.SeriesDefinition{
		ResetBy:  idnodev1.SeriesReset_SERIES_RESET_FISCAL_YEAR,
		OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_REUSE_LOWEST,
	})
	if d.Reset != format.ResetFiscalYear || d.OnExpiry != series.ExpiryReuses {
		t.Errorf("%+v", d)
	}
}
