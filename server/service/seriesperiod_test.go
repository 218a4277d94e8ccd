package service

import (
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// TestAReportOfAPeriodIsInParts, which together have all numbers. A token is for its bounds alone.
func TestAReportOfAPeriodIsInParts(t *testing.T) {
	n, _ := newLongSeries(t, 3_000)
	req := &idnodev1.ReportPeriodRequest{Series: invoices, From: "0001-01-01"}
	parts, all := 0, int64(0)
	for {
		res, err := n.ReportPeriod(t.Context(), req)
		if err != nil || res.GetLogIndex() == 0 {
			t.Fatal(res, err)
		}
		for _, s := range res.GetScopes() {
			all += s.GetOpen() + s.GetConfirmed() + s.GetVoided() + s.GetReleased() + s.GetUnknown()
		}
		if parts++; res.GetNextPageToken() == "" {
			break
		}
		req.PageToken = res.GetNextPageToken()
	}
	if parts != 2 || all != 3_000 {
		t.Errorf("%d numbers in %d parts", all, parts)
	}
	for _, tt := range []struct {
		req   *idnodev1.ReportPeriodRequest
		field string
	}{
		{&idnodev1.ReportPeriodRequest{Series: invoices, From: "2026"}, "from"},
		{&idnodev1.ReportPeriodRequest{Series: invoices, To: "2026-13-01"}, "to"},
		{&idnodev1.ReportPeriodRequest{Series: invoices, From: "2026-02-01", To: "2026-01-01"}, "to"},
		{&idnodev1.ReportPeriodRequest{Series: invoices, To: "2026-01-01", PageToken: req.GetPageToken()}, "page_token"},
	} {
		_, err := n.ReportPeriod(t.Context(), tt.req)
		if refused, ok := err.(*apierror.Error); !ok || refused.Field != tt.field {
			t.Errorf("%v: %v", tt.req, err)
		}
	}
	old := &idnodev1.ReportPeriodRequest{Series: invoices, To: "1999-12-31"}
	if res, err := n.ReportPeriod(t.Context(), old); err != nil || len(res.GetScopes()) > 0 {
		t.Errorf("%v, %v", res, err)
	}
}
