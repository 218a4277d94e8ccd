package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

const (
	linearizable = idnodev1.Consistency_CONSISTENCY_LINEARIZABLE
	stale        = idnodev1.Consistency_CONSISTENCY_STALE
	open         = idnodev1.NumberState_NUMBER_STATE_OPEN
	confirmed    = idnodev1.NumberState_NUMBER_STATE_CONFIRMED
	voided       = idnodev1.NumberState_NUMBER_STATE_VOIDED
	released     = idnodev1.NumberState_NUMBER_STATE_RELEASED
	unknown      = idnodev1.NumberState_NUMBER_STATE_UNKNOWN
)

// seriesDefinition is the definition of the answers, and definedJSON what is printed of it.
var seriesDefinition = &idnodev1.SeriesDefinition{
	Format: "INV-{branch}-{year}-{number:6}", ResetBy: idnodev1.SeriesReset_SERIES_RESET_FISCAL_YEAR,
	Order: idnodev1.SeriesOrder_SERIES_ORDER_DATES_DO_NOT_GO_BACK, OnRelease: idnodev1.SeriesOnRelease_SERIES_ON_RELEASE_VOID,
	OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_VOID, ExpiresIn: durationpb.New(72 * time.Hour), MaxOpen: 5, MaxKeys: 9,
	TimeZone:     "Europe/Berlin",
	MaxAheadDays: proto.Int32(30), MaxLength: 16, Allowed: []*idnodev1.AllowedValues{{Name: "branch", Values: []string{"BERLIN", "B2"}}},
}

const definedJSON = `{"format":"INV-{branch}-{year}-{number:6}","resetBy":"SERIES_RESET_FISCAL_YEAR","order":"SERIES_ORDER_DATES_DO_NOT_GO_BACK",` +
	`"onRelease":"SERIES_ON_RELEASE_VOID","onExpiry":"SERIES_ON_EXPIRY_VOID","expiresIn":"259200s","maxOpen":"5","maxKeys":"9","timeZone":"Europe/Berlin","maxAheadDays":30,"maxLength":16,` +
	`"allowed":[{"name":"branch","values":["BERLIN","B2"]}]}`

// TestSeriesDefinitions: what is defined is sent as a whole, and shown as it was said.
func TestSeriesDefinitions(t *testing.T) {
	least := &idnodev1.SeriesDefinition{
		Format: "{number}", ResetBy: idnodev1.SeriesReset_SERIES_RESET_NEVER, Order: idnodev1.SeriesOrder_SERIES_ORDER_ANY,
		OnRelease: idnodev1.SeriesOnRelease_SERIES_ON_RELEASE_VOID, OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_REPORT,
	}
	reuse := &idnodev1.SeriesDefinition{
		Format: "{number}", ResetBy: idnodev1.SeriesReset_SERIES_RESET_WEEK, Order: idnodev1.SeriesOrder_SERIES_ORDER_ANY,
		OnRelease: idnodev1.SeriesOnRelease_SERIES_ON_RELEASE_REUSE_LOWEST, OnExpiry: idnodev1.SeriesOnExpiry_SERIES_ON_EXPIRY_REUSE_LOWEST,
	}
	today := proto.CloneOf(least)
	today.MaxAheadDays = proto.Int32(0)
	invoices := &idnodev1.Series{Name: "invoices", Definition: seriesDefinition, Version: 2, Suspended: true, Keys: 41}
	runCommands(t, []commandTest{
		{
			"series define invoices --format {number}",
			&idnodev1.DefineSeriesResponse{Version: 1, LogIndex: 7},
			&idnodev1.DefineSeriesRequest{Name: "invoices", Definition: least},
			"1\n", `{"version":"1","logIndex":"7","suspended":false}`,
		},
		{
			"series define invoices --format {number} --max-ahead-days 0",
			&idnodev1.DefineSeriesResponse{Version: 1, LogIndex: 7},
			&idnodev1.DefineSeriesRequest{Name: "invoices", Definition: today},
			"1\n", `{"version":"1","logIndex":"7","suspended":false}`,
		},
		{
			"series define invoices --format {number} --reset-by week --on-release reuse-lowest --on-expiry reuse-lowest --expected-version 3",
			&idnodev1.DefineSeriesResponse{Version: 4},
			&idnodev1.DefineSeriesRequest{Name: "invoices", Definition: reuse, ExpectedVersion: 3},
			"4\n", `{"version":"4","logIndex":"0","suspended":false}`,
		},
		{
			"series define invoices --database shop --format INV-{branch}-{year}-{number:6} --reset-by fiscal-year --order dates-do-not-go-back " +
				"--on-release void --on-expiry void --expires-in 72h --max-open 5 --max-keys 9 " +
				"--max-ahead-days 30 --max-length 16 --allow branch=BERLIN,B2 --time-zone Europe/Berlin",
			&idnodev1.DefineSeriesResponse{Version: 1},
			&idnodev1.DefineSeriesRequest{Database: "shop", Name: "invoices", Definition: seriesDefinition},
			"1\n", `{"version":"1","logIndex":"0","suspended":false}`,
		},
		{
			"series show invoices",
			&idnodev1.GetSeriesResponse{Series: invoices},
			&idnodev1.GetSeriesRequest{Name: "invoices", Consistency: linearizable},
			"name            invoices\nstate           suspended\nkeys            41\nversion         2\nformat          INV-{branch}-{year}-{number:6}\nreset-by        fiscal-year\n" +
				"order           dates-do-not-go-back\non-release      void\non-expiry       void\nexpires-in      72h0m0s\nmax-open        5\nmax-keys        9\nmax-ahead-days  30\nmax-length      16\nallow           branch=BERLIN,B2\ntime-zone       Europe/Berlin\n",
			`{"name":"invoices","definition":` + definedJSON + `,"version":"2","suspended":true,"keys":"41"}`,
		},
		{
			"series show orders --stale",
			&idnodev1.GetSeriesResponse{Series: &idnodev1.Series{Name: "orders", Definition: least, Version: 1}},
			&idnodev1.GetSeriesRequest{Name: "orders", Consistency: stale},
			"name            orders\nstate           active\nkeys            0\nversion         1\nformat          {number}\nreset-by        never\n" +
				"order           any\non-release      void\non-expiry       report\nexpires-in      never\nmax-open        none\nmax-keys        none\nmax-ahead-days  366\nmax-length      none\nallow           any\ntime-zone       UTC\n",
			`{"name":"orders","definition":{"format":"{number}","resetBy":"SERIES_RESET_NEVER","order":"SERIES_ORDER_ANY","onRelease":"SERIES_ON_RELEASE_VOID","onExpiry":"SERIES_ON_EXPIRY_REPORT","maxOpen":"0","maxKeys":"0","timeZone":"","maxLength":0,"allowed":[]},"version":"1","suspended":false,"keys":"0"}`,
		},
		{
			"series list --prefix inv --limit 3",
			&idnodev1.ListSeriesResponse{Series: []*idnodev1.Series{invoices}},
			&idnodev1.ListSeriesRequest{Prefix: "inv", PageSize: 3, Consistency: linearizable},
			"invoices\t41\tsuspended\tINV-{branch}-{year}-{number:6}\n",
			`{"name":"invoices","definition":` + definedJSON + `,"version":"2","suspended":true,"keys":"41"}`,
		},
	})
}

// TestSeriesNumbers goes through the commands that take numbers, end and find them.
func TestSeriesNumbers(t *testing.T) {
	at := timestamppb.New(time.Date(2026, 12, 31, 12, 0, 0, 500, time.UTC))
	first := &idnodev1.SeriesNumber{
		Key: "a,b", Text: "INV-1", Scope: []string{"2026", "BERLIN"}, Number: 1, State: open, Overdue: true,
		Date: "2026-12-31", Taken: at, Expires: at, Label: "x",
	}
	final := &idnodev1.SeriesNumber{Key: "k", Text: "INV-2", Number: 2, State: confirmed, Date: "2026-12-31"}
	void := &idnodev1.SeriesNumber{Key: "k", Text: "INV-2", Number: 2, State: voided, Date: "2026-12-31", Reason: "lost"}
	const (
		firstJSON = `{"key":"a,b","text":"INV-1","scope":["2026","BERLIN"],"number":"1","state":"NUMBER_STATE_OPEN","overdue":true,"date":"2026-12-31","taken":"2026-12-31T12:00:00.000000500Z","expires":"2026-12-31T12:00:00.000000500Z","label":"x","reason":"","note":""}`
		finalJSON = `{"key":"k","text":"INV-2","scope":[],"number":"2","state":"NUMBER_STATE_CONFIRMED","overdue":false,"date":"2026-12-31","label":"","reason":"","note":""}`
		voidJSON  = `{"key":"k","text":"INV-2","scope":[],"number":"2","state":"NUMBER_STATE_VOIDED","overdue":false,"date":"2026-12-31","label":"","reason":"lost","note":""}`
	)
	runCommands(t, []commandTest{
		{
			"series take invoices --key k --database shop",
			&idnodev1.TakeNumbersResponse{Numbers: []*idnodev1.SeriesNumber{final}},
			&idnodev1.TakeNumbersRequest{Database: "shop", Series: "invoices", Keys: []string{"k"}},
			"INV-2\n", `{"numbers":[` + finalJSON + `],"logIndex":"0","scopeBegun":false}`,
		},
		{
			"series take invoices --key a,b --key k --date 2026-12-31 --value branch=BERLIN --value till=3 --label x --expires-in 90m",
			&idnodev1.TakeNumbersResponse{Numbers: []*idnodev1.SeriesNumber{first, final}, LogIndex: 9},
			&idnodev1.TakeNumbersRequest{
				Series: "invoices", Keys: []string{"a,b", "k"}, Date: "2026-12-31",
				Values: map[string]string{"branch": "BERLIN", "till": "3"}, Label: "x", ExpiresIn: durationpb.New(90 * time.Minute),
			},
			"INV-1\nINV-2\n", `{"numbers":[` + firstJSON + `,` + finalJSON + `],"logIndex":"9","scopeBegun":false}`,
		},
		{
			"series take invoices --key k --number 2 --because moved --yes",
			&idnodev1.TakeNumbersResponse{Numbers: []*idnodev1.SeriesNumber{final}},
			&idnodev1.TakeNumbersRequest{Series: "invoices", Keys: []string{"k"}, Number: 2, Because: "moved"},
			"INV-2\n", `{"numbers":[` + finalJSON + `],"logIndex":"0","scopeBegun":false}`,
		},
		{
			"series confirm invoices --key k --number 2",
			&idnodev1.ConfirmNumbersResponse{Numbers: []*idnodev1.SeriesNumber{final}},
			&idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "k", Number: 2}}},
			"INV-2\tconfirmed\tk\t2026-12-31\t\n", `{"numbers":[` + finalJSON + `],"logIndex":"0"}`,
		},
		{
			"series void invoices --key k --key l --reason lost --yes",
			&idnodev1.VoidNumbersResponse{Numbers: []*idnodev1.SeriesNumber{void}},
			&idnodev1.VoidNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "k"}, {Key: "l"}}, Reason: "lost"},
			"INV-2\tvoided\tk\t2026-12-31\tlost\n", `{"numbers":[` + voidJSON + `],"logIndex":"0"}`,
		},
		{
			"series release invoices --key k --yes",
			&idnodev1.ReleaseNumbersResponse{Numbers: []*idnodev1.SeriesNumber{{Key: "k", Number: 2, State: released}}},
			&idnodev1.ReleaseNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "k"}}},
			"-\treleased\tk\t\t\n",
			`{"numbers":[{"key":"k","text":"","scope":[],"number":"2","state":"NUMBER_STATE_RELEASED","overdue":false,"date":"","label":"","reason":"","note":""}],"logIndex":"0"}`,
		},
		{
			"series who-has invoices --key a,b",
			&idnodev1.WhoHasResponse{Number: first},
			&idnodev1.WhoHasRequest{Series: "invoices", By: &idnodev1.WhoHasRequest_Key{Key: "a,b"}, Consistency: linearizable},
			"text     INV-1\nkey      a,b\nstate    open, overdue\nscope    2026,BERLIN\nnumber   1\ndate     2026-12-31\nlabel    x\ntaken    2026-12-31T12:00:00.0000005Z\nexpires  2026-12-31T12:00:00.0000005Z\n",
			firstJSON,
		},
		{
			"series who-has invoices --text INV-2 --stale",
			&idnodev1.WhoHasResponse{Number: void},
			&idnodev1.WhoHasRequest{Series: "invoices", By: &idnodev1.WhoHasRequest_Text{Text: "INV-2"}, Consistency: stale},
			"text    INV-2\nkey     k\nstate   voided\nreason  lost\nscope   -\nnumber  2\ndate    2026-12-31\n",
			voidJSON,
		},
	})
}

// TestSeriesScopes goes through the commands that name scopes as they are.
func TestSeriesScopes(t *testing.T) {
	runCommands(t, []commandTest{
		{
			"series verify invoices --stale",
			&idnodev1.VerifySeriesResponse{Ok: true, LogIndex: 3},
			&idnodev1.VerifySeriesRequest{Series: "invoices", Consistency: stale},
			"ok\n", `{"ok":true,"scope":[],"number":"0","detail":"","logIndex":"3","nextPageToken":""}`,
		},
		{
			"series allot invoices 2026,BERLIN --from 101 --to 200 --until 2026-12-31 --note CAF-7",
			&idnodev1.AllotNumbersResponse{LogIndex: 9},
			&idnodev1.AllotNumbersRequest{
				Series: "invoices", Scope: []string{"2026", "BERLIN"},
				Allotment: &idnodev1.Allotment{From: 101, To: 200, Until: "2026-12-31", Note: "CAF-7"},
			},
			"101 to 200 allotted\n", `{"logIndex":"9"}`,
		},
		{
			"series allot orders - --from 101 --to 200 --withdraw",
			&idnodev1.AllotNumbersResponse{LogIndex: 9},
			&idnodev1.AllotNumbersRequest{Series: "orders", Allotment: &idnodev1.Allotment{From: 101, To: 200}, Withdraw: true},
			"101 to 200 taken back\n", `{"logIndex":"9"}`,
		},
		{
			"series close invoices 2026,BERLIN --yes",
			&idnodev1.CloseScopeResponse{Last: 41},
			&idnodev1.CloseScopeRequest{Series: "invoices", Scope: []string{"2026", "BERLIN"}},
			"41\n", `{"last":"41","logIndex":"0"}`,
		},
		{
			"series close orders - --yes --database shop",
			&idnodev1.CloseScopeResponse{Last: 41},
			&idnodev1.CloseScopeRequest{Database: "shop", Series: "orders"},
			"41\n", `{"last":"41","logIndex":"0"}`,
		},
		{
			"series resume invoices --yes",
			&idnodev1.ResumeSeriesResponse{LogIndex: 3},
			&idnodev1.ResumeSeriesRequest{Series: "invoices"},
			"invoices resumed\n", `{"logIndex":"3"}`,
		},
		{
			"series resume invoices --last 2026-W07,BERLIN=41@2026-02-11 --last -=5 --closed 2026-W07,BERLIN --yes",
			&idnodev1.ResumeSeriesResponse{LogIndex: 3},
			&idnodev1.ResumeSeriesRequest{Series: "invoices", Books: []*idnodev1.ScopeInBooks{
				{Scope: []string{"2026-W07", "BERLIN"}, Last: 41, LastDate: "2026-02-11", Closed: true}, {Last: 5},
			}},
			"invoices resumed\n", `{"logIndex":"3"}`,
		},
	})
}

// TestSeriesThatIsWrong: verify fails, and names the first number that is wrong.
func TestSeriesThatIsWrong(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.VerifySeriesResponse{Scope: []string{"2026", "BERLIN"}, Number: 7, Detail: "has no key"}))
	const why = "idnode: \"invoices\": number 7 of scope 2026,BERLIN has no key\n"
	for format, stdout := range map[string]string{"text": "", "json": `{"ok":false,"scope":["2026","BERLIN"],"number":"7","detail":"has no key","logIndex":"0","nextPageToken":""}` + "\n"} {
		if got := command(t, "series", "verify", "invoices", "--endpoint", node.addr, "-o",
			format); got != (outcome{code: exitFailed, stdout: stdout, stderr: why}) {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

// TestSeriesVerifyGoesOn until there is no next part.
func TestSeriesVerifyGoesOn(t *testing.T) {
	answers := []*idnodev1.VerifySeriesResponse{{NextPageToken: "more"}, {Ok: true}}
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		a := answers[0]
		if got := req.(*idnodev1.VerifySeriesRequest).GetPageToken(); (got == "") == a.GetOk() {
			t.Errorf("asks with token %q", got)
		}
		answers = answers[1:]
		return a, nil
	})
	if got := command(t, "series", "verify", "invoices", "--endpoint", node.addr); got != (outcome{stdout: "ok\n"}) {
		t.Errorf("%+v", got)
	}
}

// TestSeriesVerifyThatEndsInALaterPart has no unknown outcome: it only reads.
func TestSeriesVerifyThatEndsInALaterPart(t *testing.T) {
	first := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		if req.(*idnodev1.VerifySeriesRequest).GetPageToken() == "" {
			return &idnodev1.VerifySeriesResponse{NextPageToken: "more"}, nil
		}
		return nil, status.Error(codes.Unknown, "gone")
	})
	second := newFakeNode(t, func(proto.Message) (proto.Message, error) { return nil, status.Error(codes.NotFound, "no such series") })
	first.applied, second.applied = 1, 1
	got := command(t, "series", "verify", "invoices", "--endpoint", first.addr, "--endpoint", second.addr)
	if got.code == exitOK || strings.Contains(got.stderr, reasonUnknown) || !strings.Contains(got.stderr, "no such series") {
		t.Errorf("%+v", got)
	}
}

// TestSeriesTakeOfAVoidedNumber fails, so that a script does not put it on a document.
func TestSeriesTakeOfAVoidedNumber(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.TakeNumbersResponse{Numbers: []*idnodev1.SeriesNumber{
		{Key: "a", Text: "INV-1", State: open}, {Key: "b", Text: "INV-2", State: voided, Reason: "expired"},
	}}))
	want := outcome{code: exitFailed, stdout: "INV-1\nINV-2\n", stderr: "idnode: number INV-2 of key \"b\" is voided: expired\n"}
	if got := command(t, "series", "take", "invoices", "--key", "a", "--key", "b", "--endpoint", node.addr); got != want {
		t.Errorf("%+v", got)
	}
	got := command(t, "series", "take", "invoices", "--key", "a", "--key", "b", "--endpoint", node.addr, "-o", "json")
	if got.code != exitFailed || !strings.Contains(got.stdout, `"state":"NUMBER_STATE_VOIDED"`) || got.stderr != want.stderr {
		t.Errorf("%+v", got)
	}
}

// TestSeriesTakeBeginsAScope: a branch that is mistyped is told, beside the numbers.
func TestSeriesTakeBeginsAScope(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.TakeNumbersResponse{
		Numbers: []*idnodev1.SeriesNumber{{Key: "a", Text: "BERLN-1", Scope: []string{"2026", "BERLN"}}}, ScopeBegun: true,
	}))
	want := outcome{stdout: "BERLN-1\n", stderr: "2026,BERLN is a new scope: this is its first number\n"}
	if got := command(t, "series", "take", "invoices", "--key", "a", "--endpoint", node.addr); got != want {
		t.Errorf("%+v", got)
	}
}

// booksOf answers as a series with three scopes on two pages. Each page of a scope's
// numbers is one number, or empty if that is in another state.
func booksOf(t *testing.T) *fakeNode {
	numbers := map[string][]*idnodev1.SeriesNumber{
		"2025,X": {
			{Key: "a", Text: "X-1", State: open, Date: "2025-01-01"},
			{Key: "d", Text: "X-4", State: voided, Reason: "lost"},
			{Key: "b", Text: "X-2", State: open, Overdue: true},
			{Text: "X-5", State: unknown},
		},
		"2025,Y": {{Key: "e", Text: "Y-1", State: confirmed}, {Key: "f", Text: "Y-2", State: released, Note: "CAF 7"}},
		"2026,X": {{Key: "c", Text: "X-3", State: open}},
	}
	pages := map[string]*idnodev1.ReportSeriesResponse{
		"": {NextPageToken: "p2", Scopes: []*idnodev1.ScopeReport{
			{
				Scope: []string{"2025", "X"}, Last: 4, LastDate: "2025-12-31", Closed: true, Open: 2, Overdue: 1, Voided: 1, Unknown: 1,
				Left: new(int64(7)),
			},
			{Scope: []string{"2025", "Y"}, Last: 2, LastDate: "2025-12-31", Confirmed: 1, Released: 1, Left: new(int64(0))},
		}},
		"p2": {Scopes: []*idnodev1.ScopeReport{{Scope: []string{"2026", "X"}, Last: 9, Before: 8, Open: 1}}},
	}
	return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		list, ok := req.(*idnodev1.ListNumbersRequest)
		if !ok {
			return pages[req.(*idnodev1.ReportSeriesRequest).GetPageToken()], nil
		}
		all, at := numbers[scopeText(list.GetScope())], len(list.GetPageToken())
		res := &idnodev1.ListNumbersResponse{}
		if all[at].GetState() == list.GetState() {
			res.Numbers = all[at : at+1]
		}
		if at+1 < len(all) {
			res.NextPageToken = strings.Repeat("x", at+1)
		}
		return res, nil
	})
}

// TestSeriesReport follows the pages of scopes and numbers, up to the limit.
func TestSeriesReport(t *testing.T) {
	node := booksOf(t)
	const header = "SCOPE   LAST  DATE        BEFORE  OPEN  OVERDUE  CONFIRMED  VOIDED  RELEASED  UNKNOWN  LEFT  CLOSED\n"
	tests := []struct {
		flags string
		want  string
	}{
		{"", header + "2025,X  4     2025-12-31  0       2     1        0          1       0         1        7     yes\n2025,Y  2     2025-12-31  0       0     0        1          0       1         0        0     no\n2026,X  9  -  8  1  0  0  0  0  0  -  no\n"},
		{"--state open", "X-1\topen\ta\t2025-01-01\t\nX-2\topen, overdue\tb\t\t\nX-3\topen\tc\t\t\n"},
		{"--state open --limit 2", "X-1\topen\ta\t2025-01-01\t\nX-2\topen, overdue\tb\t\t\n"},
		{"--state confirmed", "Y-1\tconfirmed\te\t\t\n"},
		{"--state voided", "X-4\tvoided\td\t\tlost\n"},
		{"--state unknown", "X-5\tunknown\t\t\t\n"},
		{"--state released", "Y-2\treleased\tf\t\t\tCAF 7\n"},
	}
	for _, tt := range tests {
		args := append([]string{"series", "report", "invoices", "--endpoint", node.addr}, strings.Fields(tt.flags)...)
		if got := command(t, args...); got != (outcome{stdout: tt.want}) {
			t.Errorf("%q: %+v, want %q", tt.flags, got, tt.want)
		}
	}
	got := command(t, "series", "report", "invoices", "--endpoint", node.addr, "-o", "json", "--limit", "1")
	if want := `{"scope":["2025","X"],"last":"4","lastDate":"2025-12-31","closed":true,"open":"2","overdue":"1","confirmed":"0","voided":"1","released":"0","before":"0","unknown":"1","left":"7","allotments":[]}` + "\n"; !strings.HasPrefix(got.stdout, want) {
		t.Errorf("json: %+v", got)
	}
	got = command(t, "series", "report", "invoices", "--endpoint", node.addr, "-o", "json", "--state", "open", "--limit", "1")
	if want := `{"key":"a","text":"X-1","scope":[],"number":"0","state":"NUMBER_STATE_OPEN","overdue":false,"date":"2025-01-01","label":"","reason":"","note":""}` + "\n"; got != (outcome{stdout: want}) {
		t.Errorf("json of a state: %+v", got)
	}
}

// TestSeriesReportAsks for no more than it prints: only scopes that have such numbers, and
// no page beyond the limit.
func TestSeriesReportAsks(t *testing.T) {
	node := booksOf(t)
	scopes := func(token string) proto.Message {
		return &idnodev1.ReportSeriesRequest{Database: "shop", Series: "invoices", PageSize: 1000, PageToken: token, Consistency: stale}
	}
	numbers := func(scope, token string, size int32) proto.Message {
		return &idnodev1.ListNumbersRequest{
			Database: "shop", Series: "invoices", Scope: strings.Split(scope, ","), State: open, PageSize: size,
			PageToken: token, Consistency: stale,
		}
	}
	got := command(t, "series", "report", "invoices", "--state", "open", "--limit", "3", "--stale", "--database", "shop",
		"--endpoint", node.addr)
	want := []proto.Message{
		scopes(""), numbers("2025,X", "", 3), numbers("2025,X", "x", 2), numbers("2025,X", "xx", 2),
		numbers("2025,X", "xxx", 1), scopes("p2"), numbers("2026,X", "", 1),
	}
	if diff := cmp.Diff(want, node.requests(), protocmp.Transform()); got.code != exitOK || diff != "" {
		t.Errorf("%+v; requests differ (-want +got):\n%s", got, diff)
	}
}

// TestSeriesCallsAreRepeated at the next endpoint where a repeat changes nothing, also if
// the first may have done it; resume is not.
func TestSeriesCallsAreRepeated(t *testing.T) {
	lines := map[string]bool{
		"series list": true, "series show x": true, "series verify x": true, "series report x": true, "series report x --state open": true,
		"series who-has x --key k": true,
		"series take x --key k":    true, "series confirm x --key k": true, "series void x --key k --reason r --yes": true,
		"series release x --key k --yes": true, "series close x - --yes": true,
		"series define x --format {number}": true, "series resume x --yes": false, "series reconcile x - --number 1=a --yes": true,
	}
	for line, want := range lines {
		first := newFakeNode(t, refuse(failure(t, codes.Unavailable, reasonUnknown, "leader lost")))
		second := newFakeNode(t, refuse(failure(t, codes.Unavailable, "NO_QUORUM", "no leader")))
		first.applied, second.applied = 1, 1
		command(t, append(strings.Fields(line), "--endpoint", first.addr, "--endpoint", second.addr)...)
		if got := len(second.requests()) == 1; got != want {
			t.Errorf("%s: second endpoint asked: %t, want %t", line, got, want)
		}
	}
}

// TestSeriesOutcomeUnknown: the command says what to do about it, and of a command that is
// not to be repeated that it is not known.
func TestSeriesOutcomeUnknown(t *testing.T) {
	lost := newFakeNode(t, refuse(failure(t, codes.Unavailable, "", "connection lost")))
	nobody := newFakeNode(t, refuse(failure(t, codes.Unavailable, "NO_QUORUM", "no leader")))
	const notKnown = "; whether it took effect is not known"
	for line, want := range map[string]string{
		"series take x --key k":    notKnown + "; repeat the same command: it counts once\n",
		"series resume x --yes":    notKnown + "\n",
		"series who-has x --key k": "cluster status'\n",
	} {
		args := append(strings.Fields(line), "--endpoint", lost.addr, "--endpoint", nobody.addr)
		if !strings.HasPrefix(want, notKnown) {
			want = " (tried " + lost.addr + ", " + nobody.addr + ")\n"
		}
		if got := command(t, args...); got.code != exitUnavailable || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%s: %+v, want %q at the end", line, got, want)
		}
	}
}

// TestSeriesAsksFirst: what cannot be undone is not done without a yes.
func TestSeriesAsksFirst(t *testing.T) {
	for line, want := range map[string]string{
		"series close x 2026":                                  `Closes scope "2026" of "x" for good`,
		"series resume x":                                      `the series knows all numbers that are in the books, and no scope was closed since the backup`,
		"series allot x - --from 1":                            "--from and --to are required",
		"series allot x - --from 9 --to 8":                     "the last not below it",
		"series allot x - --from 8 --to 9 --note n --withdraw": "--withdraw goes without",
		"series resume x --closed 2025":                        `no scope but "2025" was closed since the backup`,
		"series resume x --last 2026=41":                       `no number of the books is above "2026=41"`,
	} {
		node := newFakeNode(t, answer(&idnodev1.CloseScopeResponse{}))
		got := command(t, append(strings.Fields(line), "--endpoint", node.addr)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || len(node.requests()) > 0 {
			t.Errorf("%s: %+v, %d calls", line, got, len(node.requests()))
		}
	}
}

// TestSeriesControlsNoTerminal: what others wrote is printed escaped.
func TestSeriesControlsNoTerminal(t *testing.T) {
	const bad = "a\x1b[2J\u202eb"
	number := &idnodev1.SeriesNumber{Key: bad, Text: bad, Label: bad, Reason: bad, Scope: []string{bad}}
	x := &idnodev1.Series{Name: bad, Definition: &idnodev1.SeriesDefinition{Format: bad}}
	numbers := []*idnodev1.SeriesNumber{number}
	for line, res := range map[string]proto.Message{
		"series list":                            &idnodev1.ListSeriesResponse{Series: []*idnodev1.Series{x}},
		"series show x":                          &idnodev1.GetSeriesResponse{Series: x},
		"series take x --key k":                  &idnodev1.TakeNumbersResponse{Numbers: numbers},
		"series reconcile x - --number 1= --yes": &idnodev1.ReconcileNumbersResponse{Numbers: numbers},
		"series confirm x --key k":               &idnodev1.ConfirmNumbersResponse{Numbers: numbers},
		"series who-has x --key k":               &idnodev1.WhoHasResponse{Number: number},
		"series verify x":                        &idnodev1.VerifySeriesResponse{Scope: []string{bad}, Detail: bad},
		"series report x":                        &idnodev1.ReportSeriesResponse{Scopes: []*idnodev1.ScopeReport{{Scope: []string{bad}}}},
		"series resume " + bad + " --yes":        &idnodev1.ResumeSeriesResponse{},
	} {
		for _, format := range []string{"text", "json"} {
			node := newFakeNode(t, answer(res))
			got := command(t, append(strings.Fields(line), "--endpoint", node.addr, "-o", format)...)
			printed := strings.NewReplacer("\n", "", "\t", "").Replace(got.stdout + got.stderr)
			if r, found := docid.FirstInvisible(printed); found || printed == "" {
				t.Errorf("%q: %+v has %U", line, got, r)
			}
		}
	}
}

// TestSeriesRefused: exit codes are those of the other commands.
func TestSeriesRefused(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.InvalidArgument: exitUsage, codes.FailedPrecondition: exitFailed,
		codes.Unavailable: exitUnavailable,
	} {
		node := newFakeNode(t, refuse(failure(t, code, "WHY", "because")))
		for _, line := range []string{
			"series take x --key k", "series void x --key k --reason r --yes", "series report x --state open",
			"series define x --format y", "series verify x", "series list",
		} {
			got := command(t, append(strings.Fields(line), "--endpoint", node.addr)...)
			if got.code != want || got.stdout != "" || !strings.HasPrefix(got.stderr, "idnode: WHY: because") {
				t.Errorf("%s: %+v, want code %d", line, got, want)
			}
		}
	}
}

// TestSeriesThatBeginsSuspended: the command says so, and which one goes on.
func TestSeriesThatBeginsSuspended(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.DefineSeriesResponse{Version: 1, Suspended: true}))
	got := command(t, "series", "define", "bills", "--format", "{number}", "--endpoint", node.addr)
	if got.code != exitOK || got.stdout != "1\n" || !strings.HasPrefix(got.stderr, `"bills" is suspended`) || !strings.HasSuffix(got.stderr, "'idnode series resume bills'\n") {
		t.Errorf("%+v", got)
	}
}
