package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/apierror"
)

// TestATextThereAndBack: in the format of a series, and in one of the caller for the value
// of an identity.
func TestATextThereAndBack(t *testing.T) {
	n := newSeriesNode(t, nil)
	for want, req := range map[string]*idnodev1.FormatNumberRequest{
		"INV-ULM-2026-000042": {
			Of: &idnodev1.FormatNumberRequest_Series{Series: "Invoices"}, Values: map[string]string{"branch": "ULM"}, Date: "2026-02-03", Number: 42,
		},
		"W0042-7": {Of: &idnodev1.FormatNumberRequest_Format{Format: "W{number:4}-{check:damm}"}, Number: 42},
	} {
		text, err := n.FormatNumber(t.Context(), req)
		if err != nil || text.GetText() != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
		parse := &idnodev1.ParseNumberRequest{Of: &idnodev1.ParseNumberRequest_Series{Series: req.GetSeries()}, Text: want}
		if req.GetSeries() == "" {
			parse.Of = &idnodev1.ParseNumberRequest_Format{Format: req.GetFormat()}
		}
		res, err := n.ParseNumber(t.Context(), parse)
		if err != nil || !res.Valid || res.Detail != "" || res.Number != 42 || req.Values != nil &&
			!slices.Equal(res.Scope, []string{"2026", "ULM"}) {
			t.Errorf("%+v, %v", res, err)
		}
		parse.Text += "0"
		res, err = n.ParseNumber(t.Context(), parse)
		if err != nil || res.Valid || res.Detail == "" || res.Number != 0 {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// TestATemplateIsReadOnce: what came of it is kept, also that it is wrong, for a bounded
// number of templates.
func TestATemplateIsReadOnce(t *testing.T) {
	var kept templates
	for _, template := range []string{"{number:4}", "{a}{b}{number}"} {
		if _, known := kept.known(template); known {
			t.Errorf("%s is known before", template)
		}
		once := kept.define(template)
		if again, known := kept.known(template); !known || again != once {
			t.Errorf("%s is read twice", template)
		}
	}
	for i := range 2 * maxTemplates {
		_ = kept.define(fmt.Sprintf("%d{number}", i))
	}
	_ = kept.define(strings.Repeat("x", 1<<20))
	if len(kept.kept) > maxTemplates || kept.kept[strings.Repeat("x", 1<<20)] != (defined{}) {
		t.Errorf("%d templates are kept", len(kept.kept))
	}
}

// TestWrongFormats name the field.
func TestWrongFormats(t *testing.T) {
	n := newSeriesNode(t, nil)
	template := func(s string) *idnodev1.FormatNumberRequest_Format {
		return &idnodev1.FormatNumberRequest_Format{Format: s}
	}
	for name, tt := range map[string]struct {
		req   *idnodev1.FormatNumberRequest
		field string
	}{
		"none":            {&idnodev1.FormatNumberRequest{Number: 1}, "series"},
		"no template":     {&idnodev1.FormatNumberRequest{Of: template("x"), Number: 1}, "format"},
		"two texts alike": {&idnodev1.FormatNumberRequest{Of: template("{a}{b}{number}"), Number: 1}, "format"},
		"no value":        {&idnodev1.FormatNumberRequest{Of: template("{a}-{number}"), Number: 1}, "values"},
		"a wrong value": {&idnodev1.FormatNumberRequest{
			Of:     template("{a}-{number}"),
			Values: map[string]string{"a": "-"}, Number: 1,
		}, "values"},
		"no date":        {&idnodev1.FormatNumberRequest{Of: template("{year}-{number}"), Number: 1}, "date"},
		"a wrong date":   {&idnodev1.FormatNumberRequest{Of: template("{number}"), Date: "x", Number: 1}, "date"},
		"a year too far": {&idnodev1.FormatNumberRequest{Of: template("{yy}-{number}"), Date: "2100-01-01", Number: 1}, "date"},
		"the number 0":   {&idnodev1.FormatNumberRequest{Of: template("{number}")}, "number"},
		"too wide":       {&idnodev1.FormatNumberRequest{Of: template("{number:2}"), Number: 100}, "number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := n.FormatNumber(t.Context(), tt.req)
			wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, tt.field)
		})
	}
	_, err := n.ParseNumber(t.Context(), &idnodev1.ParseNumberRequest{Of: &idnodev1.ParseNumberRequest_Series{Series: "none"}, Text: "1"})
	if known := new(apierror.Error); !errors.As(err, &known) || known.Reason != apierror.ReasonSeriesNotFound {
		t.Error(err)
	}
}

// TestATextWhileRolesChange: roles that keep the caller out are gone at one of the looks at
// them. Then there is a text, or a refusal.
func TestATextWhileRolesChange(t *testing.T) {
	n := newSeriesNode(t, nil)
	n.setRoles(t, everything())
	req := &idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Format{Format: "{number}"}, Number: 42}
	for looks := range 6 {
		late := newNode(t, n.world, func(c *Config) { c.State = &passingRoles{n.world.State, looks} })
		if text, err := late.FormatNumber(as("stranger"), req); text.GetText() != "42" && !denied(err) {
			t.Errorf("gone after %d looks: %q, %v", looks, text, err)
		}
	}
}

// passingRoles has roles for some looks more.
type passingRoles struct {
	*fsm.State
	looks int
}

func (s *passingRoles) Roles() fsm.Roles {
	if s.looks--; s.looks < 0 {
		return fsm.Roles{}
	}
	return s.State.Roles()
}

// TestTheFirstNumberNamesThePeriodBefore.
func TestTheFirstNumberNamesThePeriodBefore(t *testing.T) {
	n := newSeriesNode(t, nil)
	for _, tt := range []struct {
		date, key string
		before    int64
	}{{"2022-12-31", "a", 0}, {"2022-12-31", "b", 0}, {"2023-01-01", "c", 2}, {"2023-01-02", "d", 0}, {"2023-01-01", "c", 2}} {
		req := berlin(tt.key)
		req.Date = tt.date
		res, err := n.TakeNumbers(t.Context(), req)
		if err != nil || (res.Before != nil) != (tt.before > 0) || res.Before != nil &&
			(res.Before.Last != tt.before || res.Before.Scope[0] != "2022") {
			t.Errorf("%s: %+v, %v", tt.key, res.Before, err)
		}
	}
	// A key of a period before is among them, behind or in front.
	for _, keys := range [][]string{{"c", "a"}, {"a", "c"}, {"f", "c", "a"}} {
		res, err := n.TakeNumbers(t.Context(), berlin(keys...))
		if err != nil || res.Before == nil || res.Before.Scope[0] != "2022" {
			t.Errorf("%v: %+v, %v", keys, res.Before, err)
		}
	}
}

// TestScrambledNumbersAreRead by callers with the right to read their series; no answer has the secret, and no format of a
// caller has one.
func TestScrambledNumbersAreRead(t *testing.T) {
	n := newSeriesNode(t, nil)
	d := &idnodev1.SeriesDefinition{Format: "W{scrambled:8}"}
	if _, err := n.DefineSeries(t.Context(), &idnodev1.DefineSeriesRequest{Name: "codes", Definition: d}); err != nil {
		t.Fatal(err)
	}
	taken, err := n.TakeNumbers(t.Context(), &idnodev1.TakeNumbersRequest{Series: "codes", Keys: []string{"a", "b"}})
	if err != nil || taken.Numbers[0].Text == "W00000001" {
		t.Fatal(taken, err)
	}
	for _, number := range taken.Numbers {
		parsed, err := n.ParseNumber(t.Context(),
			&idnodev1.ParseNumberRequest{Of: &idnodev1.ParseNumberRequest_Series{Series: "codes"}, Text: number.Text})
		if err != nil || !parsed.Valid || parsed.Number != number.Number {
			t.Errorf("%s is %v, %v", number.Text, parsed, err)
		}
		found, err := n.WhoHas(t.Context(), &idnodev1.WhoHasRequest{Series: "codes", By: &idnodev1.WhoHasRequest_Text{Text: number.Text}})
		if err != nil || found.Number.Key != number.Key {
			t.Errorf("%s is %v, %v", number.Text, found, err)
		}
	}
	of := &idnodev1.FormatNumberRequest_Format{Format: "W{scrambled:8}"}
	_, err = n.FormatNumber(t.Context(), &idnodev1.FormatNumberRequest{Of: of, Number: 1})
	if refused := (*apierror.Error)(nil); !errors.As(err, &refused) || refused.Field != "format" {
		t.Errorf("a format of a caller: %v", err)
	}
}
