package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// TestCommandsOfIds goes through the commands that make ids, and read and change counters of identities: what they send, and what they
// print as text and as JSON.
func TestCommandsOfIds(t *testing.T) {
	runCommands(t, []commandTest{
		{
			"next users/ --count 2 --separator / --database shop",
			&idnodev1.GenerateResponse{Ids: []string{"users/1-A", "users/2-A"}, Strategy: idnodev1.Strategy_STRATEGY_SERVER_SIDE, NodeTag: "A"},
			&idnodev1.GenerateRequest{Database: "shop", Template: "users/", Separator: "/", Count: 2},
			"users/1-A\nusers/2-A\n",
			`{"ids":["users/1-A","users/2-A"],"blocks":[],"strategy":"STRATEGY_SERVER_SIDE","nodeTag":"A","logIndex":"0"}`,
		},
		{
			"next users| --count 1003 --request-id r",
			&idnodev1.GenerateResponse{Blocks: []*idnodev1.IdBlock{
				{Prefix: "users/", First: 9, Last: 10, Width: 3, Suffix: "-A"},
				{Prefix: "users/", First: 9223372036854775807, Last: 9223372036854775807},
			}},
			&idnodev1.GenerateRequest{Template: "users|", Count: 1003, RequestId: requestR, BlocksOnly: true},
			"users/009-A\nusers/010-A\nusers/9223372036854775807\n",
			`{"ids":[],"blocks":[{"prefix":"users/","first":"9","last":"10","width":3,"suffix":"-A"},{"prefix":"users/","first":"9223372036854775807","last":"9223372036854775807","width":0,"suffix":""}],"strategy":"STRATEGY_UNSPECIFIED","nodeTag":"","logIndex":"0"}`,
		},
		{
			"claim users/x --separator : --request-id r --retry-since 4",
			&idnodev1.ClaimResponse{Id: "users/x", LogIndex: 7},
			&idnodev1.ClaimRequest{Id: "users/x", Separator: ":", RequestId: &idnodev1.RequestId{Id: "r", RetrySince: proto.Uint64(4)}},
			"users/x\n", `{"id":"users/x","logIndex":"7"}`,
		},
		{
			"release users/x --request-id r --yes",
			&idnodev1.ReleaseResponse{LogIndex: 7},
			&idnodev1.ReleaseRequest{Id: "users/x", RequestId: requestR},
			"users/x\n", `{"logIndex":"7"}`,
		},
		{
			"identity get users --stale",
			&idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: "users", Value: 3}},
			&idnodev1.GetIdentityRequest{Name: "users", Consistency: stale},
			"3\n", `{"name":"users","value":"3"}`,
		},
		{
			"identity seed users --force --yes --expected 0 --request-id r -- -5",
			&idnodev1.SeedIdentityResponse{Value: -5},
			&idnodev1.SeedIdentityRequest{Name: "users", Value: proto.Int64(-5), Force: true, Expected: proto.Int64(0), RequestId: requestR},
			"-5\n", `{"value":"-5","logIndex":"0"}`,
		},
		{
			"identity delete users --forget --yes --request-id r",
			&idnodev1.DeleteIdentityResponse{Value: 8},
			&idnodev1.DeleteIdentityRequest{Name: "users", Forget: true, RequestId: requestR},
			"8\n", `{"value":"8","logIndex":"0"}`,
		},
	})
}

// TestCommandsOfHiLo goes through the commands of ranges.
func TestCommandsOfHiLo(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 500, time.UTC)
	runCommands(t, []commandTest{
		{
			"hilo next users --size 64 --last-size 32 --last-max 7 --last-range-at 2024-05-01T12:00:00.0000005Z --request-id r",
			&idnodev1.NextRangeResponse{
				Prefix: "users/", Low: 33, High: 96, Size: 64, NodeTag: "B", RangeAt: timestamppb.New(at),
				Token: "01ab", LogIndex: 5,
			},
			&idnodev1.NextRangeRequest{Tag: "users", Size: 64, LastSize: 32, LastMax: 7, LastRangeAt: timestamppb.New(at), RequestId: requestR},
			"low       33\nhigh      96\nsize      64\nprefix    users/\nnode-tag  B\nrange-at  2024-05-01T12:00:00.0000005Z\ntoken     01ab\n",
			`{"prefix":"users/","low":"33","high":"96","size":"64","nodeTag":"B","rangeAt":"2024-05-01T12:00:00.000000500Z","token":"01ab","logIndex":"5","fromReserve":false}`,
		},
		{
			"hilo get users",
			&idnodev1.GetHiLoResponse{Hilo: &idnodev1.HiLo{Tag: "users", Max: 96}},
			&idnodev1.GetHiLoRequest{Tag: "users", Consistency: linearizable},
			"96\n", `{"tag":"users","max":"96"}`,
		},
		{
			"hilo reserves",
			&idnodev1.ListReservesResponse{
				NodeTag:  "A",
				Reserves: []*idnodev1.Reserve{{Database: "shop", Tag: "a\u202eb", Numbers: 96, Lasts: durationpb.New(90 * time.Second)}},
			},
			&idnodev1.ListReservesRequest{PageSize: 1000},
			"A\tshop\ta\\u202eb\t96\t1.5\n",
			`{"nodeTag":"A","database":"shop","tag":"a\u202eb","numbers":"96","lasts":"90s"}`,
		},
		{
			"hilo next users --label till3 --request-id r",
			&idnodev1.NextRangeResponse{Low: 1, High: 32, RangeAt: timestamppb.New(at)},
			&idnodev1.NextRangeRequest{Tag: "users", Label: "till3", RequestId: requestR},
			"low       1\nhigh      32\nsize      0\nrange-at  2024-05-01T12:00:00.0000005Z\n",
			`{"prefix":"","low":"1","high":"32","size":"0","nodeTag":"","rangeAt":"2024-05-01T12:00:00.000000500Z","token":"","logIndex":"0","fromReserve":false}`,
		},
		{
			"hilo who-holds users 65",
			&idnodev1.WhoHoldsResponse{
				State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: 65, High: 96, LogIndex: 9,
				Holder: &idnodev1.RangeHolder{
					Label: "till3", Principal: "a\u202eb", NodeTag: "B",
					IssuedAt: &timestamppb.Timestamp{Seconds: at.Unix()},
				},
			},
			&idnodev1.WhoHoldsRequest{Tag: "users", Number: 65, Consistency: linearizable},
			"state      outstanding\nlow        65\nhigh       96\nlabel      till3\nprincipal  a\\u202eb\nnode-tag   B\nissued-at  2024-05-01T12:00:00Z\n",
			`{"state":"RANGE_STATE_OUTSTANDING","low":"65","high":"96","holder":{"label":"till3","principal":"a\u202eb","nodeTag":"B","issuedAt":"2024-05-01T12:00:00Z"},"logIndex":"9"}`,
		},
		{
			"hilo who-holds users 97 --stale",
			&idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED, LogIndex: 9},
			&idnodev1.WhoHoldsRequest{Tag: "users", Number: 97, Consistency: stale},
			"state  not-issued\n", `{"state":"RANGE_STATE_NOT_ISSUED","low":"0","high":"0","logIndex":"9"}`,
		},
		{
			"hilo set users 64 --expected 32 --request-id r",
			&idnodev1.SetHiLoResponse{Max: 64, LogIndex: 9},
			&idnodev1.SetHiLoRequest{Tag: "users", Max: 64, Expected: 32, RequestId: requestR},
			"64\n", `{"max":"64","logIndex":"9"}`,
		},
		{
			"hilo return users --low 1 --high 32 --last 7 --token 01ab --request-id r",
			&idnodev1.ReturnRangeResponse{Returned: true, Max: 7},
			&idnodev1.ReturnRangeRequest{Tag: "users", Low: 1, High: 32, Last: proto.Int64(7), Token: "01ab", RequestId: requestR},
			"returned, max is now 7\n", `{"returned":true,"max":"7","logIndex":"0"}`,
		},
		{
			"hilo return users --low 1 --high 32 --last 7 --request-id r --yes",
			&idnodev1.ReturnRangeResponse{Max: 64},
			&idnodev1.ReturnRangeRequest{Tag: "users", Low: 1, High: 32, Last: proto.Int64(7), WithoutToken: true, RequestId: requestR},
			"not returned, max stays 64: late, repeated, foreign, or not the newest range\n",
			`{"returned":false,"max":"64","logIndex":"0"}`,
		},
	})
}

// TestCommandsOfTheCluster goes through the commands of members, settings and health.
func TestCommandsOfTheCluster(t *testing.T) {
	member := &idnodev1.Member{
		Tag: "A", Id: "aa", GrpcAddress: "h:1", RaftAddress: "h:2", Role: idnodev1.Role_ROLE_LEADER, LogFormat: 1,
		Reachable: true, AppliedIndex: 9, Version: "v1",
	}
	runCommands(t, []commandTest{
		{
			"cluster members --removed",
			&idnodev1.ListMembersResponse{Members: []*idnodev1.Member{member}},
			&idnodev1.ListMembersRequest{IncludeRemoved: true, PageSize: 1000, Consistency: linearizable},
			"TAG  ROLE    ANSWERS  BEHIND  STORAGE  CERTIFICATE  VERSION  GRPC\nA    leader  yes      0       ok       -            v1       h:1\n",
			`{"tag":"A","id":"aa","grpcAddress":"h:1","raftAddress":"h:2","httpAddress":"","role":"ROLE_LEADER","logFormat":1,"reachable":true,"appliedIndex":"9","behind":"0","storageFull":false,"version":"v1","storageSlow":false,"callers":[]}`,
		},
		{
			"cluster join-token --tag D --watcher --for 10m",
			&idnodev1.CreateJoinTokenResponse{Token: "SECRET", LogIndex: 3},
			&idnodev1.CreateJoinTokenRequest{Tag: "D", Watcher: true, ValidFor: durationpb.New(10 * time.Minute)},
			"SECRET\n", `{"token":"SECRET","logIndex":"3"}`,
		},
		{
			"cluster remove C --yes",
			&idnodev1.RemoveMemberResponse{LogIndex: 3},
			&idnodev1.RemoveMemberRequest{Tag: "C"},
			"C removed\n", `{"logIndex":"3"}`,
		},
		{
			"cluster remove C --force --yes",
			&idnodev1.RemoveMemberResponse{LogIndex: 3},
			&idnodev1.RemoveMemberRequest{Tag: "C", Force: true},
			"C removed\n", `{"logIndex":"3"}`,
		},
		{
			"cluster transfer B",
			&idnodev1.TransferLeadershipResponse{LeaderTag: "B"},
			&idnodev1.TransferLeadershipRequest{Tag: "B"},
			"B\n", `{"leaderTag":"B"}`,
		},
		{
			"cluster settings --stale",
			&idnodev1.ListSettingsResponse{Settings: []*idnodev1.Setting{{Key: "max-claims", Value: 5, DefaultValue: 4, Description: "claims"}}},
			&idnodev1.ListSettingsRequest{Consistency: stale},
			"KEY         VALUE  DEFAULT  LIMITS\nmax-claims  5      4        claims\n",
			`{"key":"max-claims","value":"5","defaultValue":"4","description":"claims","lowered":""}`,
		},
		{
			"health --service idnode.live",
			&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING},
			&healthpb.HealthCheckRequest{Service: "idnode.live"},
			"SERVING\n", `{"status":"SERVING"}`,
		},
	})
}

var requestR = &idnodev1.RequestId{Id: "r"}

func runCommands(t *testing.T, tests []commandTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.line, tt.run)
	}
}

// commandTest is a command line, what a node answers, and what the command must send and
// print, as text and as JSON.
type commandTest struct {
	line string
	res  proto.Message
	req  proto.Message
	text string
	json string
}

func (tt commandTest) run(t *testing.T) {
	node := newFakeNode(t, answer(tt.res))
	node.applied = 1
	args := append([]string{}, strings.Fields(tt.line)...)
	args = insertFlags(args, "--endpoint", node.addr)
	if got := command(t, args...); got != (outcome{stdout: tt.text}) {
		t.Errorf("text: got %+v, want %q", got, tt.text)
	}
	if got := command(t, insertFlags(args, "-o", "json")...); got != (outcome{stdout: tt.json + "\n"}) {
		t.Errorf("json: got %+v, want %s", got, tt.json)
	}
	want := []proto.Message{tt.req, tt.req}
	if diff := cmp.Diff(want, node.requests(), protocmp.Transform()); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
}

// insertFlags puts flags before a "--", after which they would be arguments.
func insertFlags(args []string, flags ...string) []string {
	for i, a := range args {
		if a == "--" {
			return append(append(append([]string{}, args[:i]...), flags...), args[i:]...)
		}
	}
	return append(append([]string{}, args...), flags...)
}

func TestClusterStatus(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.GetStatusResponse{
		ClusterId: "c1", Self: &idnodev1.Member{Tag: "B", Role: idnodev1.Role_ROLE_FOLLOWER}, LeaderTag: "A", Term: 3, HasQuorum: true,
		LastContact: durationpb.New(12 * time.Millisecond), AppliedIndex: 7, CommitIndex: 8, StateHash: 0xabc, LogFormat: 1,
		Counts: &idnodev1.StateCounts{Identities: 2}, Version: "v1", StorageFull: true, Warnings: []string{"the disk of B is nearly full: so"},
		Members: []*idnodev1.Member{{Tag: "B", Role: idnodev1.Role_ROLE_FOLLOWER, Reachable: true, StorageFull: true, GrpcAddress: "b:7400"}},
	}))
	got := command(t, "cluster", "status", "--endpoint", node.addr)
	want := `cluster  c1
node     B, follower
leader   A
quorum   yes
storage  nearly full on B
term     3
log      applied 7, committed 8, format 1
contact  12ms ago
state    0000000000000abc
holds    0 databases, 2 identities, 0 HiLo tags, 0 claims, 0 series with 0 keys, 0 request ids (also those of the nodes themselves), 0 bytes of names
version  v1
warning  the disk of B is nearly full: so

TAG  ROLE      ANSWERS  BEHIND  STORAGE  CERTIFICATE  VERSION  GRPC
B    follower  yes      0       full     -            -        b:7400
`
	if diff := cmp.Diff(outcome{stdout: want}, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNextMakesRequestIDs where the cluster counts, and only there.
func TestNextMakesRequestIDs(t *testing.T) {
	tests := []struct {
		template string
		claim    bool
		want     bool
	}{
		{"", false, false},
		{"users/", false, false},
		{"users|", false, true},
		{"users/x", false, false},
		{"users/x", true, true},
	}
	for _, tt := range tests {
		node := newFakeNode(t, answer(&idnodev1.GenerateResponse{Ids: []string{"x"}}))
		node.applied = 1
		args := []string{"next", tt.template, "--endpoint", node.addr}
		if tt.claim {
			args = append(args, "--claim")
		}
		if got := command(t, args...); got.code != exitOK {
			t.Fatalf("%q: %+v", tt.template, got)
		}
		if got := node.requests()[0].(*idnodev1.GenerateRequest).GetRequestId() != nil; got != tt.want {
			t.Errorf("%q, claim %t: request id sent %t, want %t", tt.template, tt.claim, got, tt.want)
		}
	}
}

// TestManyGUIDs are asked for in parts that fit into an answer.
func TestManyGUIDs(t *testing.T) {
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		n := req.(*idnodev1.GenerateRequest).GetCount()
		return &idnodev1.GenerateResponse{Ids: strings.Fields(strings.Repeat("g ", int(n)))}, nil
	})
	got := command(t, "next", "", "--count", "25001", "--time-ordered", "--endpoint", node.addr)
	if n := strings.Count(got.stdout, "\n"); got.code != exitOK || n != 25001 || len(node.requests()) != 3 {
		t.Errorf("code %d, %d ids in %d calls: %s", got.code, n, len(node.requests()), got.stderr)
	}
	for _, r := range node.requests() {
		if !r.(*idnodev1.GenerateRequest).GetTimeOrdered() {
			t.Errorf("%v does not ask for GUIDs in order of time", r)
		}
	}
}

// TestWatch shows the status again until it is interrupted. Where a node does not answer, the
// error stands below the last status, which stays.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	node := newFakeNode(t, func(proto.Message) (proto.Message, error) {
		switch asked++; asked {
		case 1:
			return &idnodev1.GetStatusResponse{LeaderTag: "A"}, nil
		case 2:
			return nil, failure(t, codes.Unavailable, "STARTING", "not yet")
		case 4:
			cancel()
		}
		return &idnodev1.GetStatusResponse{LeaderTag: "B"}, nil
	})
	var stdout, stderr strings.Builder
	a := &app{stdout: &stdout, stderr: &stderr, toTerminal: true}
	code := a.run(ctx, []string{"cluster", "status", "--watch=1ms", "--endpoint", node.addr}, nil)
	if text := stdout.String(); code != exitOK || !strings.Contains(text, "leader   A") || !strings.Contains(text, "leader   B") ||
		strings.Count(text, "\x1b[2J") != 2 || strings.Count(stderr.String(), "STARTING: not yet") != 1 {
		t.Errorf("code %d, %q, %q", code, text, stderr.String())
	}
}

// TestListsPageThrough checks that a listing follows the page tokens up to its
// limit.
func TestListsPageThrough(t *testing.T) {
	pages := map[string]*idnodev1.ListIdentitiesResponse{
		"":   {Identities: []*idnodev1.Identity{{Name: "a", Value: 1}, {Name: "b", Value: 2}}, NextPageToken: "p2"},
		"p2": {Identities: []*idnodev1.Identity{{Name: "c", Value: 3}}},
	}
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		return pages[req.(*idnodev1.ListIdentitiesRequest).GetPageToken()], nil
	})
	tests := []struct {
		flags string
		want  string
	}{
		{"", "a\t1\nb\t2\nc\t3\n"},
		{"--limit 2 --prefix x --stale", "a\t1\nb\t2\n"},
		{"-o json", `{"name":"a","value":"1"}` + "\n" + `{"name":"b","value":"2"}` + "\n" + `{"name":"c","value":"3"}` + "\n"},
	}
	for _, tt := range tests {
		args := append([]string{"identity", "list", "--endpoint", node.addr}, strings.Fields(tt.flags)...)
		if got := command(t, args...); got != (outcome{stdout: tt.want}) {
			t.Errorf("%q: %+v", tt.flags, got)
		}
	}
	limited := node.requests()[2].(*idnodev1.ListIdentitiesRequest)
	want := &idnodev1.ListIdentitiesRequest{Prefix: "x", PageSize: 2, Consistency: idnodev1.Consistency_CONSISTENCY_STALE}
	if diff := cmp.Diff(want, limited, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOtherLists(t *testing.T) {
	hilos := newFakeNode(t, answer(&idnodev1.ListHiLoResponse{Hilos: []*idnodev1.HiLo{{Tag: "users", Max: 32}}}))
	if got := command(t, "hilo", "list", "--endpoint", hilos.addr); got != (outcome{stdout: "users\t32\n"}) {
		t.Errorf("%+v", got)
	}
	databases := newFakeNode(t, answer(&idnodev1.ListDatabasesResponse{Databases: []string{"default", "shop"}}))
	for output, want := range map[string]string{"text": "default\nshop\n", "json": `{"database":"default"}` + "\n" + `{"database":"shop"}` + "\n"} {
		if got := command(t, "database", "list", "-o", output, "--endpoint", databases.addr); got != (outcome{stdout: want}) {
			t.Errorf("%+v", got)
		}
	}
	claims := newFakeNode(t, answer(&idnodev1.ListClaimsResponse{Ids: []string{"users/x"}}))
	for output, want := range map[string]string{"text": "users/x\n", "json": `{"id":"users/x"}` + "\n"} {
		if got := command(t, "claims", "-o", output, "--endpoint", claims.addr); got != (outcome{stdout: want}) {
			t.Errorf("%+v", got)
		}
	}
}

// TestListsAtATerminal have heads and columns, and say that there is nothing.
func TestListsAtATerminal(t *testing.T) {
	at := func(res proto.Message, args ...string) string {
		var stdout, stderr strings.Builder
		a := &app{stdout: &stdout, stderr: &stderr, toTerminal: true, env: []string{"NO_COLOR=1"}}
		a.run(t.Context(), append(args, "--endpoint", newFakeNode(t, answer(res)).addr), nil)
		return stdout.String() + stderr.String()
	}
	for _, tt := range []struct{ got, want string }{
		{at(&idnodev1.ListIdentitiesResponse{Identities: []*idnodev1.Identity{{Name: "invoices", Value: 7}, {Name: "a", Value: 12}}},
			"identity", "list"), "NAME      VALUE\ninvoices  7\na         12\n"},
		{at(&idnodev1.ListHiLoResponse{}, "hilo", "list"), "TAG  MAX\n(none)\n"},
		{at(&idnodev1.ListClaimsResponse{Ids: []string{"users/x"}}, "claims"), "ID\nusers/x\n"},
		{
			at(&idnodev1.ListSeriesResponse{Series: []*idnodev1.Series{{Name: "invoices", Keys: 3}}}, "series", "list"),
			"NAME      KEYS  STATE   FORMAT\ninvoices  3     active  \n",
		},
		{at(&idnodev1.ListClaimsResponse{}, "claims", "-o", "json"), ""},
		{at(&idnodev1.ListClaimsResponse{}, "claims", "--limit", "-1"), "idnode: --limit must not be negative\n"},
		{at(nil, "claims"), "idnode: UNIMPLEMENTED: method ListClaims not implemented; is this the gRPC port of a node (7400), and not its HTTP port (7402)?\n"},
	} {
		if tt.got != tt.want {
			t.Errorf("printed %q, want %q", tt.got, tt.want)
		}
	}
}

// TestNothingControlsTheTerminal: names with control characters, and errors that hold
// some, are printed escaped, also as JSON.
func TestNothingControlsTheTerminal(t *testing.T) {
	const name, shown = "a\x1b[2J\r\n\u009b\u2028\u202e\u200b\u00ad\ufeffb", `a\u001b[2J\u000d\u000a\u009b\u2028\u202e\u200b\u00ad\ufeffb`
	check := func(res proto.Message, want string, args ...string) {
		t.Helper()
		node := newFakeNode(t, answer(res))
		args = append(args, "--endpoint", node.addr)
		if got := command(t, args...); got.code != exitOK || got.stdout != want {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
		got := command(t, append(args, "-o", "json")...)
		if r, found := docid.FirstInvisible(strings.ReplaceAll(got.stdout, "\n", "")); got.code != exitOK || found {
			t.Errorf("%v: %+v has %U", args, got, r)
		}
	}
	identity := &idnodev1.ListIdentitiesResponse{Identities: []*idnodev1.Identity{{Name: name, Value: 1}}}
	check(identity, shown+"\t1\n", "identity", "list")
	check(&idnodev1.ListHiLoResponse{Hilos: []*idnodev1.HiLo{{Tag: name, Max: 32}}}, shown+"\t32\n", "hilo", "list")
	check(&idnodev1.ListClaimsResponse{Ids: []string{name}}, shown+"\n", "claims")
	check(&idnodev1.GenerateResponse{Ids: []string{name}}, shown+"\n", "next", "x|")
	check(&idnodev1.GenerateResponse{Blocks: []*idnodev1.IdBlock{{Prefix: name, First: 1, Last: 2}}}, shown+"1\n"+shown+"2\n",
		"next", "x|", "--count", "2")
	check(&idnodev1.ClaimResponse{Id: name}, shown+"\n", "claim", name)
	check(&idnodev1.ReleaseResponse{}, shown+"\n", "release", "--yes", name)

	node := newFakeNode(t, refuse(failure(t, codes.AlreadyExists, "ID_CLAIMED", "\x1b[2J\u202e is claimed")))
	if got := command(t, "claim", "x", "--endpoint", node.addr); got.stderr != `idnode: ID_CLAIMED: \u001b[2J\u202e is claimed`+"\n" {
		t.Errorf("%q", got.stderr)
	}
	for _, format := range []string{"json", "text"} {
		var text bytes.Buffer
		newLogger(&text, slog.LevelInfo, format).Info("a name", "name", name)
		if r, found := docid.FirstInvisible(strings.TrimSuffix(text.String(), "\n")); found {
			t.Errorf("%s: %q has %U", format, text.String(), r)
		}
	}
}

// TestErrors checks exit code and text of every kind of failure.
func TestErrors(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{
			"a bad value is wrong usage", failure(t, codes.InvalidArgument, "INVALID_NAME", "too long", "name"), exitUsage,
			"idnode: INVALID_NAME: too long (field name)\n",
		},
		{"claimed", failure(t, codes.AlreadyExists, "ID_CLAIMED", "users/x is claimed"), exitFailed, "idnode: ID_CLAIMED: users/x is claimed\n"},
		{
			"conflict", failure(t, codes.Aborted, "CONCURRENCY", "max is 64"), exitFailed,
			"idnode: CONCURRENCY: max is 64; read the current value and try again\n",
		},
		{
			"no quorum", failure(t, codes.Unavailable, "NO_QUORUM", "no leader"), exitUnavailable,
			"idnode: NO_QUORUM: no leader; try another --endpoint, or see 'idnode cluster status'\n",
		},
		{
			"not ours", failure(t, codes.Unimplemented, "", "unknown method"), exitFailed,
			"idnode: UNIMPLEMENTED: unknown method; is this the gRPC port of a node (7400), and not its HTTP port (7402)?\n",
		},
		{
			"several lines", failure(t, codes.NotFound, "NOT_FOUND", "nothing:\n  here\nor there"), exitFailed,
			"idnode: NOT_FOUND: nothing: here; or there\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := newFakeNode(t, refuse(tt.err))
			got := command(t, "identity", "get", "users", "--endpoint", node.addr)
			if got != (outcome{code: tt.code, stderr: tt.stderr}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	tests := []struct {
		name string
		h    func(proto.Message) (proto.Message, error)
		code int
	}{
		{"serving", answer(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}), exitOK},
		{"not serving", answer(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}), exitUnavailable},
		{"unknown service", refuse(failure(t, codes.NotFound, "", "unknown service")), exitFailed},
		{"no answer", refuse(failure(t, codes.Unavailable, "", "going away")), exitUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := newFakeNode(t, tt.h)
			if got := command(t, "health", "--endpoint", node.addr); got.code != tt.code {
				t.Errorf("got %+v, want code %d", got, tt.code)
			}
		})
	}
	full := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*healthpb.HealthCheckRequest); ok {
			return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
		}
		return &idnodev1.GetStatusResponse{Warnings: []string{"refused with STORAGE_FULL"}}, nil
	})
	if got := command(t, "health", "--endpoint", full.addr); got.code != exitOK || got.stdout != "SERVING\n" ||
		got.stderr != "idnode: warning: refused with STORAGE_FULL\n" {
		t.Errorf("without room: %+v", got)
	}
	if got := command(t, "health", "--endpoint", unusedAddr(t)); got.code != exitUnavailable {
		t.Errorf("nobody there: %+v", got)
	}
}

// TestFlagsBeforeTheCommand work too: people keep them in an alias.
func TestFlagsBeforeTheCommand(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.GetHiLoResponse{Hilo: &idnodev1.HiLo{Max: 7}}))
	for _, line := range []string{"--endpoint %s hilo get users", "hilo --endpoint %s get users"} {
		args := strings.Fields(strings.Replace(line, "%s", node.addr, 1))
		if got := command(t, args...); got != (outcome{stdout: "7\n"}) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestReservesOfEachNode: a node that is gone does not hide the others.
func TestReservesOfEachNode(t *testing.T) {
	of := func(tag string) string {
		node := newFakeNode(t,
			answer(&idnodev1.ListReservesResponse{
				NodeTag:  tag,
				Reserves: []*idnodev1.Reserve{{Database: "default", Tag: "users", Numbers: 7}},
			}))
		node.cluster = someCluster
		return node.addr
	}
	gone := unusedAddr(t)
	got := command(t, "hilo", "reserves", "--endpoint", of("A")+","+gone+","+of("C"))
	if got.code != exitUnavailable || got.stdout != "A\tdefault\tusers\t7\t0.0\nC\tdefault\tusers\t7\t0.0\n" ||
		!strings.Contains(got.stderr, gone) {
		t.Errorf("%+v", got)
	}
}
