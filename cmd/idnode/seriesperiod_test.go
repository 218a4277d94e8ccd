package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestSeriesReportOfAPeriod adds the parts of a scope, and joins ranges that go on in the next part.
func TestSeriesReportOfAPeriod(t *testing.T) {
	text := func(n int64, s string) *idnodev1.SeriesText { return &idnodev1.SeriesText{Number: n, Text: s} }
	void := func(first, last *idnodev1.SeriesText, reason string) *idnodev1.VoidedRange {
		return &idnodev1.VoidedRange{First: first, Last: last, Reason: reason}
	}
	parts := map[string]*idnodev1.ReportPeriodResponse{
		"": {NextPageToken: "p2", Scopes: []*idnodev1.PeriodReport{{
			Scope: []string{"2026"}, First: text(1, "=1"), Last: text(4, "=4"), Confirmed: 2, Voided: 2,
			VoidedRanges: []*idnodev1.VoidedRange{void(text(2, "=2"), text(2, "=2"), "torn"), void(text(4, "=4"), text(4, "=4"), "lost")},
		}}},
		"p2": {Scopes: []*idnodev1.PeriodReport{
			{
				Scope: []string{"2026"}, First: text(5, "=5"), Last: text(6, "=6"), Open: 1, Voided: 1,
				VoidedRanges: []*idnodev1.VoidedRange{void(text(5, "=5"), text(5, "=5"), "lost")},
			},
			{Scope: []string{"2027"}, First: text(1, "=1"), Last: text(1, "=1"), Confirmed: 1},
		}},
	}
	for flags, want := range map[string]string{
		"": "SCOPE  STATE      FIRST  LAST  COUNT  REASON\n" +
			"2026   all        =1     =6    6      \n2026   open                    1      \n2026   confirmed               2      \n" +
			"2026   voided     =2     =2    1      torn\n2026   voided     =4     =5    2      lost\n" +
			"2027   all        =1     =1    1      \n2027   confirmed               1      \n",
		"--csv": "scope,state,first,last,count,reason\n2026,all,'=1,'=6,6,\n2026,open,,,1,\n2026,confirmed,,,2,\n" +
			"2026,voided,'=2,'=2,1,torn\n2026,voided,'=4,'=5,2,lost\n2027,all,'=1,'=1,1,\n2027,confirmed,,,1,\n",
	} {
		node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
			return proto.Clone(parts[req.(*idnodev1.ReportPeriodRequest).GetPageToken()]), nil
		})
		args := []string{"series", "report", "invoices", "--from", "2026-01-01", "--to", "2026-12-31", "--endpoint", node.addr}
		if flags != "" {
			args = append(args, flags)
		}
		if got := command(t, args...); got.stdout != want || got.code != exitOK {
			t.Errorf("%s: %+v", flags, got)
		}
		first := node.requests()[0].(*idnodev1.ReportPeriodRequest)
		if first.GetSeries() != "invoices" || first.GetFrom() != "2026-01-01" || first.GetTo() != "2026-12-31" {
			t.Errorf("asked for %v", first)
		}
	}
}
