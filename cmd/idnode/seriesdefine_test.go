package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestSeriesPreview: a definition says what it means, to standard error, and a dry run says
// it alone, to standard output. JSON has all in one message.
func TestSeriesPreview(t *testing.T) {
	const shown = "texts         INV-BRANCH-000543, INV-BRANCH-000544\nvalues        branch\nbegins again  2027-01-01\nforgets       3 open numbers, 2 allotments\n"
	const json = `{"version":"2","logIndex":"0","suspended":false,"preview":{"texts":["INV-BRANCH-000543","INV-BRANCH-000544"],` +
		`"values":["branch"],"beginsAgain":"2027-01-01","forgets":"3","forgetsAllotments":"2"}}` + "\n"
	node := newFakeNode(t, answer(&idnodev1.DefineSeriesResponse{Version: 2, Preview: &idnodev1.SeriesPreview{
		Texts: []string{"INV-BRANCH-000543", "INV-BRANCH-000544"}, Values: []string{"branch"}, BeginsAgain: "2027-01-01",
		Forgets: 3, ForgetsAllotments: 2,
	}}))
	for flags, want := range map[string]outcome{
		"":                  {stdout: "2\n", stderr: shown},
		"--dry-run":         {stdout: shown},
		"-o json":           {stdout: json},
		"--dry-run -o json": {stdout: json},
	} {
		args := []string{
			"series", "define", "invoices", "--format", "INV-{branch}-{number:6}", "--begin", "2026,ULM=543",
			"--endpoint", node.addr,
		}
		if got := command(t, append(args, strings.Fields(flags)...)...); got != want {
			t.Errorf("%q: %+v, want %+v", flags, got, want)
		}
	}
	plain := newFakeNode(t, answer(&idnodev1.DefineSeriesResponse{Version: 1, Preview: &idnodev1.SeriesPreview{Texts: []string{"1", "2"}}}))
	if got := command(t, "series", "define", "x", "--format", "{number}", "--dry-run", "--endpoint",
		plain.addr); got != (outcome{stdout: "texts         1, 2\nbegins again  never\n"}) {
		t.Errorf("%+v", got)
	}
}

// TestSeriesBegins: scopes are sent as they are said, and a dry run as one.
func TestSeriesBegins(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.DefineSeriesResponse{}))
	command(t, "series", "define", "x", "--format", "{number}", "--begin", "-=543", "--begin", "2026-W07,ULM=12", "--dry-run",
		"--endpoint", node.addr)
	sent := node.requests()[0].(*idnodev1.DefineSeriesRequest)
	want := []*idnodev1.ScopeBegin{{First: 543}, {Scope: []string{"2026-W07", "ULM"}, First: 12}}
	if diff := cmp.Diff(want, sent.GetBegins(), protocmp.Transform()); diff != "" || !sent.GetDryRun() {
		t.Errorf("dry run %v: %s", sent.GetDryRun(), diff)
	}
	for _, wrong := range []string{"543", "=5", "2026,=5", "-=", "-=x", "-=0", "-=-1", "-=99999999999999999999"} {
		got := command(t, "series", "define", "x", "--format", "{number}", "--begin", wrong, "--endpoint", node.addr)
		if got.code != exitUsage || got.stdout != "" {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
	if len(node.requests()) != 1 {
		t.Errorf("%d calls", len(node.requests()))
	}
}

// TestSeriesDelete asks first, and says how many numbers would be forgotten: whoever may not
// read the series may still delete it.
func TestSeriesDelete(t *testing.T) {
	readable := true
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		report, ok := req.(*idnodev1.ReportSeriesRequest)
		switch {
		case !ok:
			return &idnodev1.DeleteSeriesResponse{LogIndex: 7}, nil
		case !readable:
			return nil, failure(t, codes.PermissionDenied, "PERMISSION_DENIED", "no role")
		case report.GetPageToken() == "":
			return &idnodev1.ReportSeriesResponse{Scopes: []*idnodev1.ScopeReport{{Open: 3, Overdue: 1}}, NextPageToken: "p2"}, nil
		default:
			return &idnodev1.ReportSeriesResponse{Scopes: []*idnodev1.ScopeReport{{Open: 4}}}, nil
		}
	})
	del := []string{"series", "delete", "invoces", "--endpoint", node.addr}
	if got := command(t, del...); got.code != exitUsage || !strings.Contains(got.stderr, "--expected-version") || len(node.requests()) != 0 {
		t.Errorf("without a version: %+v", got)
	}
	del = append(del, "--expected-version", "1")
	for said, may := range map[string]bool{"forgets its 7 open numbers": true, "forgets its open numbers": false} {
		readable = may
		if got := command(t, del...); got.code != exitUsage || !strings.Contains(got.stderr, said) {
			t.Errorf("%+v, not %s", got, said)
		}
	}
	asked := len(node.requests())
	if got := command(t, append(del, "--yes")...); got != (outcome{stdout: "invoces deleted\n"}) {
		t.Errorf("%+v", got)
	}
	want := []proto.Message{&idnodev1.DeleteSeriesRequest{Name: "invoces", ExpectedVersion: 1}}
	if diff := cmp.Diff(want, node.requests()[asked:], protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
