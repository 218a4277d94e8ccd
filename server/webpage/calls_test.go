package webpage

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/httpapi"
)

// step is one call of the page and what it gets.
type step struct {
	method, call, body string
	status             int
	want               string
}

func walk(t *testing.T, s http.Handler, steps []step) {
	t.Helper()
	for i, step := range steps {
		t.Run(fmt.Sprintf("%d %s %s", i, step.method, step.call), func(t *testing.T) {
			w := send(s, step.method, api+step.call, step.body)
			wantJSON(t, w, step.status, step.want)
			wantHeaders(t, step.call, w.Header())
			if got := w.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control %q", got)
			}
		})
	}
}

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// TestCalls goes through what the page asks of its own calls.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	w.seed("invoices", 7)
	walk(t, w.newServer(httpapi.Config{}), []step{
		{get, "etags", "", 200, `{"etags":[
			{"name":"default","last":"0","reserved":"9","ceiling":"0"},
			{"name":"shop","last":"4611686018427387904","reserved":"4611686018427387905","ceiling":"4611686018427387906"}]}`},
		{get, "etags?prefix=S&pageSize=1", "", 200, `{"etags":[{"name":"shop"}],"nextPageToken":""}`},
		{get, "etags?pageSize=x", "", 200, `{"nextPageToken":""}`},
		{get, "etags?pageSize=1001", "", 400, `{"reason":"INVALID_PAGE_SIZE","field":"page_size"}`},
		{get, "etags?pageToken=x", "", 400, `{"reason":"INVALID_PAGE_TOKEN","field":"page_token"}`},
		{get, "overview", "", 200, `{"voters":3,"quorum":2,"reachable":2,"issued":{"guid":7},"furthest_index":2,
			"status":{"version":"v1","leaderTag":"A","term":"3","hasQuorum":true,"counts":{"identities":"1","deletedIdentities":"0","hilos":"0","claims":"0"},
			"self":{"tag":"A","role":"ROLE_LEADER"}}}`},
	})
}

// TestMembers: each member's role, whether it answers, and how far it is behind.
func TestMembers(t *testing.T) {
	w := newWorld(t)
	w.seed("a", 1)
	wantJSON(t, send(w.newServer(httpapi.Config{}), get, api+"overview", ""), 200, `{"status":{"members":[
		{"tag":"A","role":"ROLE_LEADER","reachable":true,"appliedIndex":"2","behind":"0"},
		{"tag":"B","role":"ROLE_FOLLOWER","reachable":true,"appliedIndex":"1","behind":"1"},
		{"tag":"C","role":"ROLE_FOLLOWER","reachable":false,"appliedIndex":"0","behind":"0"}]},"members":[{},{},{}]}`)
}

// TestExplain: what a template would become, before it does.
func TestExplain(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	for query, want := range map[string]string{
		"":                          `{"strategy":"guid","needs_quorum":false}`,
		"template=+":                `{"strategy":"guid","needs_quorum":false}`,
		"template=users/":           `{"strategy":"server-side","needs_quorum":false}`,
		"template=users-&separator": `{"strategy":"semantic"}`,
		"template=users:&separator=:": `{"strategy":"server-side","needs_quorum":false,` +
			`"why":"The template ends with the separator \":\", so the node adds its own etag for this database, and its tag. It needs no other node for that."}`,
		"template=invoices%7C":  `{"strategy":"identity","needs_quorum":true,"why":"The template ends with a pipe, so the cluster agrees on the next value of the identity \"invoices\". That takes a quorum."}`,
		"template=users/ayende": `{"strategy":"semantic","needs_quorum":false}`,
	} {
		wantJSON(t, send(s, get, api+"explain?"+query, ""), 200, want)
	}
	wantJSON(t, send(s, get, api+"explain?template=%5C", ""), 400, `{"reason":"INVALID_ID","field":"template"}`)
	wantJSON(t, send(s, get, api+"explain?template=a&separator=%7C", ""), 400, `{"reason":"INVALID_SEPARATOR","field":"separator"}`)
}

// TestWithoutQuorum: the node says so, and shows what it knows by itself.
func TestWithoutQuorum(t *testing.T) {
	w := newWorld(t)
	w.seed("a", 1)
	w.loseQuorum()
	walk(t, w.newServer(httpapi.Config{}), []step{
		{get, "overview", "", 200, `{"alarms":[{"name":"IdnodeNoQuorum","critical":true,"millis":90000}],"status":{"hasQuorum":false,"leaderTag":""}}`},
		{get, "etags?prefix=d", "", 200, `{"etags":[{"name":"default"}]}`},
	})
}

// TestRights: the page hears what gives its viewer rights in the database that it looks at, and
// shows nothing that the viewer may not read.
func TestRights(t *testing.T) {
	as := newWorld(t).withRoles()
	const bills = `{"Database":"*","Prefix":"","Name":"bills","Rights":"read"}`
	wantJSON(t, as("dns:shop", "overview?database=Shop"), 200, `{"you":{"name":"dns:shop","cluster":"","grants":[
		{"Database":"shop","Prefix":"inv","Boundary":true,"Rights":"generate,seed"},`+bills+`]}}`)
	wantJSON(t, as("dns:guest", "overview?database=shop"), 200, `{"you":{"grants":[`+bills+`]}}`)
	wantJSON(t, as("dns:shop", "explain?database=shop&template=Inv|"), 200, `{"may":"generate,seed"}`)
	wantJSON(t, as("dns:shop", "explain?database=shop&template=inventory|"), 200, `{"may":""}`)
	wantJSON(t, as("dns:shop", "etags"), 403, `{"reason":"PERMISSION_DENIED"}`)
}

// TestOtherDatabasesAreNotCounted for those who may not read them all: neither on the page nor by the status.
func TestOtherDatabasesAreNotCounted(t *testing.T) {
	w := newWorld(t)
	w.seed("invoices", 7)
	as := w.withRoles()
	wantJSON(t, as("dns:auditor", "overview"), 200, `{"issued":{"guid":7},"status":{"counts":{"identities":"1"}}}`)
	wantJSON(t, as("dns:shop", "overview"), 200, `{"issued":null,"reserve":null,"status":{"leaderTag":"A"}}`)
	if body := as("dns:shop", "overview").Body.String(); strings.Contains(body, `"counts"`) || strings.Contains(body, "ids_per_second") {
		t.Errorf("a reader of one database hears of others: %s", body)
	}
	if body := as("dns:shop", "history").Body.String(); !strings.Contains(body, `"samples"`) {
		t.Error(body)
	}
}

// withRoles gives some callers rights, and returns what makes a call as one of them.
func (w *world) withRoles() (as func(who, call string) *httptest.ResponseRecorder) {
	t := w.t
	t.Helper()
	table, err := rights.New([]rights.Role{
		{Name: "shop", Principals: []string{"shop"}, Grants: []rights.Grant{
			{Database: "shop", Prefix: "inv", Boundary: true, Rights: rights.Generate | rights.Seed}, {Database: "other", Rights: rights.Read},
		}},
		{Name: "all", Principals: []string{rights.Any}, Grants: []rights.Grant{{Database: rights.Any, Name: "bills", Rights: rights.Read}}},
		{Name: "auditors", Principals: []string{"auditor"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Read}}},
		{Name: "operators", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Cluster}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := rights.Encode(table)
	if err != nil {
		t.Fatal(err)
	}
	w.Must(op.Envelope{Principal: proto.String("dns:ops")}, &raftlogv1.RolesSet{Table: encoded})
	s := w.newServer(httpapi.Config{Principal: func(state tls.ConnectionState) string { return state.ServerName }})
	return func(who, call string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(get, "https://a.example:7402"+api+call, nil)
		r.TLS = &tls.ConnectionState{ServerName: who}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		return answer
	}
}
