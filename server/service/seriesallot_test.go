package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/apierror"
)

// TestAllottedNumbers: a scope gives those of its ranges with their notes, and none beyond; the report says what is left.
func TestAllottedNumbers(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	scope := []string{"2023", "BERLIN"}
	allot := func(a *idnodev1.Allotment, withdraw bool) error {
		_, err := n.AllotNumbers(t.Context(), &idnodev1.AllotNumbersRequest{Series: "Invoices", Scope: scope, Allotment: a, Withdraw: withdraw})
		return err
	}
	first := &idnodev1.Allotment{From: 11, To: 12, Until: "2999-12-31", Note: "res. 1876"}
	for _, a := range []*idnodev1.Allotment{first, first, {From: 21, To: 21}, {From: 31, To: 39}} {
		if err := allot(a, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := allot(&idnodev1.Allotment{From: 31, To: 39}, true); err != nil {
		t.Fatal(err)
	}
	taken, err := n.TakeNumbers(t.Context(), berlin("a", "b"))
	if err != nil || taken.Numbers[1].Text != "INV-BERLIN-2023-000012" || taken.Numbers[1].Note != "res. 1876" {
		t.Fatalf("%+v, %v", taken, err)
	}
	report, err := n.ReportSeries(t.Context(), &idnodev1.ReportSeriesRequest{Series: "invoices"})
	if err != nil || report.Scopes[0].Last != 12 || report.Scopes[0].GetLeft() != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := fmt.Sprint(report.Scopes[0].Allotments); got != fmt.Sprint([]*idnodev1.Allotment{
		{From: 11, To: 12, Until: "2999-12-31", Note: "res. 1876", Given: 2}, {From: 21, To: 21, Left: 1},
	}) {
		t.Error(got)
	}
	_, err = n.TakeNumbers(t.Context(), berlin("c", "d"))
	wantError(t, err, apierror.CodeOutOfRange, apierror.ReasonSeriesFull, "keys")
	for field, a := range map[string]*idnodev1.Allotment{
		"allotment.until": {From: 51, To: 52, Until: "tomorrow"},
		"allotment.given": {From: 51, To: 52, Given: 1},
		"allotment.left":  {From: 51, To: 52, Left: 1},
		"allotment":       {From: 12, To: 13},
		"allotments":      {From: 20, To: 30},
	} {
		wantError(t, allot(a, false), apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, field)
	}
	after, err := json.Marshal(log.records[len(log.records)-1].After)
	if last := log.records[len(log.records)-1]; err != nil || last.Event != audit.EventSeriesAllot ||
		string(after) != `{"scope":["2023","BERLIN"],"from":20,"to":30}` && string(after) != `{"scope":["2023","BERLIN"],"from":12,"to":13}` {
		t.Errorf("%+v: %s, %v", last, after, err)
	}
}

// TestANumberFromElsewhere: it is confirmed, those before it are voided, and the audit log has who said so, and why.
func TestANumberFromElsewhere(t *testing.T) {
	log := &memoryAudit{}
	n := newSeriesNode(t, func(c *Config) { c.Audit = log })
	req := berlin("a")
	req.Number, req.Because = 3, "by hand"
	taken, err := n.TakeNumbers(t.Context(), req)
	if err != nil || taken.Numbers[0].Number != 3 || taken.LogIndex == 0 ||
		taken.Numbers[0].State != idnodev1.NumberState_NUMBER_STATE_CONFIRMED {
		t.Fatalf("%v, %v", taken, err)
	}
	after, err := json.Marshal(log.records[len(log.records)-1].After)
	if last := log.records[len(log.records)-1]; err != nil || last.Event != audit.EventSeriesEnter || last.Outcome != audit.OutcomeDone ||
		!strings.HasPrefix(string(after), `{"key":"a","number":3,"values":["BERLIN"]`) || !strings.HasSuffix(string(after),
		`"because":"by hand"}`) {
		t.Errorf("%+v: %s, %v", last, after, err)
	}
	req = berlin("b")
	req.Number, req.Because = 3, "by hand"
	_, err = n.TakeNumbers(t.Context(), req)
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonNumberState, "number")
	req.Because = ""
	_, err = n.TakeNumbers(t.Context(), req)
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries, "because")
}

// TestAPageOfScopesHasFewAllotments: a page that has very many is short.
func TestAPageOfScopesHasFewAllotments(t *testing.T) {
	scopes := make([]series.Summary, 30)
	for i := range scopes {
		scopes[i].Allotments = make([]series.Allotment, 60)
	}
	if got := scopesOfPage(scopes, 20); got != 16 {
		t.Errorf("%d scopes", got)
	}
	if got := scopesOfPage(scopes[:10], 20); got != 10 {
		t.Errorf("%d of 10 scopes", got)
	}
	if got := scopesOfPage(scopes, 5); got != 5 {
		t.Errorf("%d of a page of 5", got)
	}
}
