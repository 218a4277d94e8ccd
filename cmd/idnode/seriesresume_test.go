package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
)

// knownScopes answers as a series with two scopes, and takes every resume.
func knownScopes(t *testing.T) *fakeNode {
	return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*idnodev1.ReportSeriesRequest); ok {
			return &idnodev1.ReportSeriesResponse{Scopes: []*idnodev1.ScopeReport{
				{Scope: []string{"2025"}, Last: 7, LastDate: "2025-12-31", Open: 2, Unknown: 1}, {Scope: []string{"2026"}, Last: 50_000},
			}}, nil
		}
		return &idnodev1.ResumeSeriesResponse{LogIndex: 9}, nil
	})
}

// resumes are the calls of a command that changed something.
func resumes(node *fakeNode) (calls []proto.Message) {
	for _, m := range node.requests() {
		if _, ok := m.(*idnodev1.ResumeSeriesRequest); ok {
			calls = append(calls, m)
		}
	}
	return calls
}

// TestResumeFarBeyondTheBackup: what is more than a call may have goes out in several, and
// the last one alone lets the series go on. A scope is closed with its last number.
func TestResumeFarBeyondTheBackup(t *testing.T) {
	node := knownScopes(t)
	got := command(t, "series", "resume", "bills", "--yes", "--last", "2026=300000@2026-12-30", "--closed", "2026", "--closed", "2025",
		"--endpoint", node.addr)
	if want := (outcome{stdout: "bills resumed\n"}); got != want {
		t.Errorf("%+v", got)
	}
	books := func(last int64) *idnodev1.ScopeInBooks {
		return &idnodev1.ScopeInBooks{Scope: []string{"2026"}, Last: last, LastDate: "2026-12-30"}
	}
	end := books(300_000)
	end.Closed = true
	want := []proto.Message{
		&idnodev1.ResumeSeriesRequest{
			Series: "bills", More: true,
			Books: []*idnodev1.ScopeInBooks{books(150_000), {Scope: []string{"2025"}, Last: 7, Closed: true}},
		},
		&idnodev1.ResumeSeriesRequest{Series: "bills", More: true, Books: []*idnodev1.ScopeInBooks{books(250_000)}},
		&idnodev1.ResumeSeriesRequest{Series: "bills", Books: []*idnodev1.ScopeInBooks{end}},
	}
	if diff := cmp.Diff(want, resumes(node), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestResumeOfAllottedNumbers counts those that are allotted, and leaves it to the cluster to refuse others.
func TestResumeOfAllottedNumbers(t *testing.T) {
	r := seriesResume{scopes: map[string]*idnodev1.ScopeReport{"2026": {Last: 900_010, Allotments: []*idnodev1.Allotment{
		{From: 1, To: 800_000}, {From: 900_001, To: 950_000}, {From: 2_000_001, To: 3_000_000}, {From: 7_000_000, To: 7_000_001},
	}}}}
	for last, want := range map[int64][]int64{
		900_020:   {900_020},
		2_050_010: {2_050_010},
		2_050_011: {2_050_010, 2_050_011},
		2_150_011: {2_050_010, 2_150_010, 2_150_011},
		5_000_000: {2_050_010, 2_150_010, 2_250_010, 2_350_010, 2_450_010, 2_550_010, 2_650_010, 2_750_010, 2_850_010, 2_950_010, 5_000_000},
	} {
		var got []int64
		for _, call := range r.calls([]*idnodev1.ScopeInBooks{{Scope: []string{"2026"}, Last: last}}) {
			got = append(got, call.GetBooks()[0].GetLast())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d: in steps to %d, want %d", last, got, want)
		}
	}
}

// TestResumeOfManyScopes: each call keeps within the server's bounds, and together they say
// everything.
func TestResumeOfManyScopes(t *testing.T) {
	var books []*idnodev1.ScopeInBooks
	for i := range 1000 {
		books = append(books, &idnodev1.ScopeInBooks{Scope: []string{fmt.Sprint(i)}, Last: int64(1 + i*211)})
	}
	var r seriesResume
	reached := map[string]int64{}
	calls := r.calls(books)
	for i, call := range calls {
		seen, unknown := map[string]bool{}, int64(0)
		for _, b := range call.GetBooks() {
			name := scopeText(b.GetScope())
			if added := b.GetLast() - reached[name]; seen[name] || added < 1 || added > resumedInScope {
				t.Errorf("call %d: %d numbers of scope %s, in it before: %t", i, added, name, seen[name])
			}
			unknown += b.GetLast() - reached[name]
			seen[name], reached[name] = true, b.GetLast()
		}
		if len(seen) < 1 || len(seen) > scopesAtOnce || unknown > resumedAtOnce {
			t.Errorf("call %d has %d scopes with %d numbers", i, len(seen), unknown)
		}
	}
	for _, b := range books {
		if got := reached[scopeText(b.GetScope())]; got != b.GetLast() {
			t.Errorf("scope %s reaches %d of %d", scopeText(b.GetScope()), got, b.GetLast())
		}
	}
}

// TestResumeOfAnUnknownScope: nobody knows the last number of a scope that is only closed.
func TestResumeOfAnUnknownScope(t *testing.T) {
	node := knownScopes(t)
	got := command(t, "series", "resume", "bills", "--yes", "--closed", "2024", "--endpoint", node.addr)
	if got.code != exitUsage || !strings.Contains(got.stderr, `the series knows no scope "2024": say its last number with --last`) || len(resumes(node)) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestResumeWithoutADate says how it is written.
func TestResumeWithoutADate(t *testing.T) {
	node := newFakeNode(t,
		refuse(failure(t, codes.InvalidArgument, "INVALID_SERIES", "books have numbers beyond those that are known, and no last date", "books")))
	got := command(t, "series", "resume", "bills", "--yes", "--last", "2026=8", "--endpoint", node.addr)
	if got.code != exitUsage || !strings.Contains(got.stderr, "as in --last 2026,BERLIN=4711@2026-12-30") {
		t.Errorf("%+v", got)
	}
}

// TestResumeInAnotherSpelling: the values of a scope have no case, in what the series knows
// and in the flags.
func TestResumeInAnotherSpelling(t *testing.T) {
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*idnodev1.ReportSeriesRequest); ok {
			return &idnodev1.ReportSeriesResponse{Scopes: []*idnodev1.ScopeReport{{Scope: []string{"2026", "BERLIN"}, Last: 50_000}}}, nil
		}
		return &idnodev1.ResumeSeriesResponse{LogIndex: 9}, nil
	})
	args := []string{"series", "resume", "bills", "--yes", "--endpoint", node.addr, "--last", "2026,berlin=200000", "--closed", "2026,Berlin"}
	if got, want := command(t, args...), (outcome{stdout: "bills resumed\n"}); got != want {
		t.Errorf("%+v", got)
	}
	scope := []string{"2026", "berlin"}
	want := []proto.Message{
		&idnodev1.ResumeSeriesRequest{Series: "bills", More: true, Books: []*idnodev1.ScopeInBooks{{Scope: scope, Last: 150_000}}},
		&idnodev1.ResumeSeriesRequest{Series: "bills", Books: []*idnodev1.ScopeInBooks{{Scope: scope, Last: 200_000, Closed: true}}},
	}
	if diff := cmp.Diff(want, resumes(node), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := command(t, append(args, "--last", "2026,Berlin=3")...); got.code != exitUsage || !strings.Contains(got.stderr, "twice") {
		t.Errorf("a scope in two spellings: %+v", got)
	}
}

// TestResumeShowsWhatTheSeriesHas to a person, before the question.
func TestResumeShowsWhatTheSeriesHas(t *testing.T) {
	node := knownScopes(t)
	var shown strings.Builder
	r := seriesResume{name: "bills", sure: &confirmation{person: true, in: strings.NewReader("no\n"), err: &shown}}
	s := &clusterClient{connection: connection{Endpoints: []string{node.addr}}, timeout: defaultTimeout}
	defer s.close()
	if err := r.run(t.Context(), s); err == nil || len(resumes(node)) > 0 {
		t.Errorf("%v, %d calls", err, len(resumes(node)))
	}
	for _, want := range []string{
		"SCOPE  LAST   DATE        BEFORE  OPEN", "2025   7      2025-12-31  0       2", "UNKNOWN", "CLOSED",
		"no scope was closed since the backup", "Type yes to go on",
	} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%s does not say %q", shown.String(), want)
		}
	}
}

// reconciles answers with the state of each number, and fails from a number on.
func reconciles(t *testing.T, failFrom int64) *fakeNode {
	return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		res := &idnodev1.ReconcileNumbersResponse{LogIndex: 3}
		for _, n := range req.(*idnodev1.ReconcileNumbersRequest).GetNumbers() {
			if n.GetNumber() >= failFrom {
				return nil, failure(t, codes.FailedPrecondition, "NUMBER_STATE", "number 1500 is confirmed")
			}
			state := confirmed
			if n.GetKey() == "" {
				state = voided
			}
			res.Numbers = append(res.Numbers, &idnodev1.SeriesNumber{Text: fmt.Sprint("B-", n.GetNumber()), Key: n.GetKey(), State: state})
		}
		return res, nil
	})
}

// TestReconcile: a line for each number, as of confirm.
func TestReconcile(t *testing.T) {
	node := reconciles(t, 1<<40)
	got := command(t, "series", "reconcile", "--yes", "bills", "2026,BERLIN", "--database", "shop", "--number", "7=cart=3", "--number", "8=",
		"--reason", "torn", "--endpoint", node.addr)
	if want := (outcome{stdout: "B-7\tconfirmed\tcart=3\t\t\nB-8\tvoided\t\t\t\n"}); got != want {
		t.Errorf("%+v", got)
	}
	want := []proto.Message{&idnodev1.ReconcileNumbersRequest{
		Database: "shop", Series: "bills", Scope: []string{"2026", "BERLIN"}, Reason: "torn",
		Numbers: []*idnodev1.ReconciledNumber{{Number: 7, Key: "cart=3"}, {Number: 8}},
	}}
	if diff := cmp.Diff(want, node.requests(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReconcileFromAFile: in calls of 1,000, and of so many bytes; one that fails says how
// far the command came.
func TestReconcileFromAFile(t *testing.T) {
	lines := []string{"\ufeffnumber,key"}
	for i := 1; i <= 2500; i++ {
		lines = append(lines, fmt.Sprintf("%d,\"cart,%d\"", i, i))
	}
	file := filepath.Join(t.TempDir(), "books.csv")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\r\n")+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := reconciles(t, 1<<40)
	got := command(t, "series", "reconcile", "--yes", "bills", "-", "--file", file, "--endpoint", node.addr)
	if got.code != exitOK || strings.Count(got.stdout, "\n") != 2500 ||
		!strings.HasSuffix(got.stdout, "B-2500\tconfirmed\tcart,2500\t\t\n") || len(node.requests()) != 3 {
		t.Errorf("code %d, %d lines, %d calls, %s", got.code, strings.Count(got.stdout, "\n"), len(node.requests()), got.stderr)
	}
	got = command(t, "series", "reconcile", "--yes", "bills", "-", "--file", file, "--endpoint", reconciles(t, 1500).addr)
	if got.code != exitFailed || strings.Count(got.stdout, "\n") != 1000 ||
		!strings.HasPrefix(got.stderr, "1000 numbers were reconciled before this") {
		t.Errorf("code %d, %d lines, %s", got.code, strings.Count(got.stdout, "\n"), got.stderr)
	}
	var long []*idnodev1.ReconciledNumber
	for i := range 700 {
		long = append(long, &idnodev1.ReconciledNumber{Number: int64(i), Key: strings.Repeat("k", 128)})
	}
	for _, part := range partsOf(long) {
		if len(part)*128 > 40_000 {
			t.Errorf("%d keys of 128 bytes", len(part))
		}
	}
}

// TestBooksThatAreWrong: a file is refused with its line, before anything is sent.
func TestBooksThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "it has no first line",
		"7,cart\n":                     "its first line must be number,key",
		"number;key\n7;a\n":            "its first line must be number,key, with a comma",
		"number,key\n":                 "it has no numbers",
		"number,key\n7\n":              "wrong number of fields",
		"number,key\n7,a\nx,b\n":       `line 3: "x" is no number from 1 on`,
		"number,key\n0,a\n":            `line 2: "0" is no number from 1 on`,
		"number,key\n7,a\n8,\n7,b\n":   "line 4: number 7 is in line 2 too",
		"number,key\n7,K\xf6ln\n8,b\n": "line 2: the key is not UTF-8",
	} {
		node := reconciles(t, 1)
		got := commandIn(t, text, "series", "reconcile", "--yes", "bills", "-", "--file", "-", "--endpoint", node.addr)
		if got.code == exitOK || !strings.Contains(got.stderr, want) || len(node.requests()) > 0 {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}

// commandIn runs a command line with a text on the standard input.
func commandIn(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, strings.NewReader(in), &stdout, &stderr, nil)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}
