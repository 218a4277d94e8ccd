package webpage

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
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

// TestCalls goes through all that the page can do.
func TestCalls(t *testing.T) {
	walk(t, newWorld(t).newServer(httpapi.Config{}), []step{
		{get, "identities", "", 200, `{"items":[],"next":""}`},
		{post, "identities/seed", `{"name":"Invoices","value":"100"}`, 200, `{"name":"Invoices","value":"100"}`},
		{post, "identities/seed", `{"name":"invoices|","value":"42"}`, 200, `{"value":"100"}`},
		{post, "identities/seed", `{"name":"invoices","value":"42","force":true,"expected":"99"}`, 409, `{"reason":"CONCURRENCY"}`},
		{post, "identities/seed", `{"name":"invoices","value":"42","force":true,"expected":"100"}`, 200, `{"value":"42"}`},
		{get, "identity?name=INVOICES", "", 200, `{"name":"invoices","value":"42"}`},
		{get, "identity?name=nobody", "", 404, `{"reason":"IDENTITY_NOT_FOUND"}`},
		{post, "identities/seed", `{"name":"big","value":"9223372036854775807"}`, 200, `{"value":"9223372036854775807"}`},
		{get, "identities?fresh=true", "", 200, `{"items":[{"name":"big","value":"9223372036854775807"},{"name":"invoices","value":"42"}]}`},
		{get, "identities?prefix=IN", "", 200, `{"items":[{"name":"invoices","value":"42"}],"next":""}`},
		{get, "identities?database=shop", "", 200, `{"items":[]}`},
		{get, "identities?size=x", "", 400, `{"reason":"INVALID_PAGE_SIZE","field":"size"}`},
		{get, "identities?token=x", "", 400, `{"reason":"INVALID_PAGE_TOKEN"}`},
		{get, "identities?database=a%20b", "", 400, `{"reason":"INVALID_DATABASE"}`},
		{post, "identities/delete", `{"name":"big"}`, 200, `{"name":"big"}`},
		{post, "identities/delete", `{"name":"big"}`, 404, `{"reason":"IDENTITY_NOT_FOUND"}`},

		{post, "ids", `{"template":"invoices|","count":2}`, 200, `{"strategy":"identity","needs_quorum":true,"ids":["invoices/43","invoices/44"]}`},
		{post, "ids", `{"template":"users/","request_id":"r"}`, 200, `{"strategy":"server-side","needs_quorum":false,"ids":["users/0000000000000000001-A"],"node_tag":"A"}`},
		{post, "ids", `{"template":"","request_id":"r"}`, 200, `{"strategy":"guid"}`},
		{post, "ids", `{"template":"users/ayende"}`, 200, `{"strategy":"semantic","ids":["users/ayende"]}`},
		{get, "claims", "", 200, `{"items":[]}`},
		{post, "ids", `{"template":"users/ayende","claim":true}`, 200, `{"ids":["users/ayende"]}`},
		{post, "ids", `{"template":"users/ayende","claim":true}`, 409, `{"reason":"ID_CLAIMED"}`},
		{post, "ids", `{"template":"a\\b"}`, 400, `{"reason":"INVALID_ID","field":"template"}`},
		{post, "ids", `{"template":"invoices|","count":-1}`, 400, `{"reason":"INVALID_COUNT"}`},

		{post, "claims/claim", `{"id":"users/Oren"}`, 200, `{"name":"users/Oren"}`},
		{post, "claims/claim", `{"id":"users/oren"}`, 409, `{"reason":"ID_CLAIMED"}`},
		{get, "claims", "", 200, `{"items":[{"name":"users/ayende"},{"name":"users/oren"}]}`},
		{post, "claims/release", `{"id":"users/oren"}`, 200, `{"name":"users/oren"}`},
		{post, "claims/release", `{"id":"users/oren"}`, 404, `{"reason":"CLAIM_NOT_FOUND"}`},

		{post, "ranges", `{"tag":"Orders"}`, 200, `{"strategy":"HiLo","prefix":"Orders/","low":"1","high":"32","node_tag":"A"}`},
		{post, "ranges", `{"tag":"orders","size":10}`, 200, `{"low":"33","high":"42"}`},
		{post, "ranges", `{"tag":"orders|"}`, 400, `{"reason":"INVALID_TAG"}`},
		{get, "hilos", "", 200, `{"items":[{"name":"orders","value":"42"}]}`},
		{post, "hilos/raise", `{"tag":"orders","max":"50","expected":"41"}`, 409, `{"reason":"CONCURRENCY"}`},
		{post, "hilos/raise", `{"tag":"orders","max":"50","expected":"42"}`, 200, `{"name":"orders","value":"50"}`},
		{post, "hilos/raise", `{"tag":"orders","max":"49","expected":"50"}`, 400, `{"reason":"INVALID_MAX"}`},
		{get, "hilo?name=ORDERS", "", 200, `{"name":"orders","value":"50"}`},
		{get, "hilo?name=nobody", "", 404, `{"reason":"HILO_NOT_FOUND"}`},

		{get, "databases", "", 200, `{"items":[{"name":"default"}]}`},
		{get, "etags", "", 200, `{"items":[
			{"name":"default","last":"0","reserved":"9","ceiling":"0"},
			{"name":"shop","last":"4611686018427387904","reserved":"4611686018427387905","ceiling":"4611686018427387906"}]}`},
		{get, "etags?prefix=s&size=1", "", 200, `{"next":""}`},
		{get, "overview", "", 200, `{"version":"v1","leader":"A","term":3,"has_quorum":true,"voters":3,"quorum":2,"reachable":2,
			"issued":{"guid":7},"counts":{"identities":1,"hidden_identities":1,"hilos":1,"claims":1},"self":{"tag":"A","self":true,"role":"leader"}}`},
	})
}

// TestSeries lists series with their scopes, and finds a number by its key and by its text.
func TestSeries(t *testing.T) {
	w := newWorld(t)
	shop := op.Envelope{Database: "default"}
	w.Must(shop, &raftlogv1.SeriesDefine{Name: "bills", Definition: &raftlogv1.SeriesDefinition{Format: "B{number:3}", OnRelease: 1}})
	take := &raftlogv1.SeriesTake{Name: "bills", Keys: []string{"a", "b", "c", "B001"}, Date: proto.Int32(20_000), Version: 1, SinceUnixNano: w.Now().UnixNano()}
	w.Must(shop, take)
	w.Must(shop, &raftlogv1.SeriesEnd{Name: "bills", State: uint32(series.Voided), Reason: "torn", Keys: []*raftlogv1.SeriesKey{{Key: "b"}}})
	w.Must(shop, &raftlogv1.SeriesEnd{Name: "bills", State: uint32(series.Released), Keys: []*raftlogv1.SeriesKey{{Key: "c"}}})
	w.Must(shop, &raftlogv1.SeriesCloseScope{Name: "bills"})
	w.Must(shop, &raftlogv1.SeriesDefine{Name: "orders", Definition: &raftlogv1.SeriesDefinition{Format: "{number}"}})
	walk(t, w.newServer(httpapi.Config{}), []step{
		{get, "series?sort=keys&descending=true", "", 200, `{"items":[
			{"name":"bills","format":"B{number:3}","keys":"4","suspended":false},{"name":"orders","keys":"0"}],"next":""}`},
		{get, "series/scopes?name=Bills", "", 200, `{"items":[{"scope":[],"closed":true,"last":"4","before":"0","open":"2","overdue":"0","confirmed":"0","voided":"1","released":"1","unknown":"0"}],"next":""}`},
		{get, "series/unknown?name=bills", "", 200, `{"left":"0"}`},
		{get, "series/scopes?name=none", "", 404, `{"reason":"SERIES_NOT_FOUND"}`},
		{get, "series/number?name=bills&of=b", "", 200, `{"text":"B002","key":"b","state":"voided","date":"2024-10-04","reason":"torn"}`},
		{get, "series/number?name=bills&of=B002", "", 200, `{"text":"B002","key":"b"}`},
		{get, "series/number?name=bills&of=B001", "", 200, `{"text":"B004","key":"B001"}`},
		{get, "series/number?name=bills&of=B009", "", 404, `{"reason":"NUMBER_NOT_FOUND"}`},
		{get, "series/number?name=bills&of=x", "", 404, `{"reason":"NUMBER_NOT_FOUND"}`},
		{get, "series/number?name=bills", "", 400, `{"reason":"INVALID_SERIES","field":"key"}`},
	})
}

// TestUnknownNumbersAreReconciled one after the other, in the order of scopes and numbers.
func TestUnknownNumbersAreReconciled(t *testing.T) {
	w := newWorld(t)
	shop := op.Envelope{Database: "default"}
	w.Must(shop, &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
		Name: "bills", Definition: &raftlogv1.SeriesDefinition{Format: "B{branch}-{number:3}"}, Version: 1, Final: true,
	}}})
	record := func(scope string, numbers ...*raftlogv1.SeriesStored) {
		w.Must(shop, &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "bills", Scope: []string{scope}, First: 1, Numbers: numbers,
			Origin: &raftlogv1.SeriesOrigin{Version: 1, KeysStay: true},
		}}})
	}
	confirmed := &raftlogv1.SeriesStored{Key: "a", State: uint32(series.Confirmed), Date: 20_000, TakenUnixNano: 1}
	open := &raftlogv1.SeriesStored{Key: "b", State: uint32(series.Open), Date: 20_000, TakenUnixNano: 1}
	record("x", confirmed)
	record("y", &raftlogv1.SeriesStored{Key: "c", State: uint32(series.Confirmed), Date: 20_000, TakenUnixNano: 1}, open)
	w.Must(shop, &raftlogv1.SeriesResume{Name: "bills", Books: []*raftlogv1.SeriesInBooks{{Scope: []string{"y"}, Last: 3}}})
	walk(t, w.newServer(httpapi.Config{}), []step{
		{get, "series/unknown?name=bills", "", 200, `{"scope":["y"],"number":"2","text":"By-002","key":"b","state":"unknown","left":"2"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["y"],"number":"2","key":"b"}`, 200, `{"text":"By-002","key":"b","state":"confirmed"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["y"],"number":"2","key":"b"}`, 200, `{"state":"confirmed"}`},
		{get, "series/unknown?name=bills", "", 200, `{"number":"3","text":"By-003","key":"","left":"1"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["y"],"number":"3","key":"b"}`, 409, `{"reason":"KEY_CONFLICT"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["y"],"number":"3","key":""}`, 200, `{"key":"","state":"voided","reason":"not in the books"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["x"],"number":"1","key":""}`, 412, `{"reason":"NUMBER_STATE"}`},
		{post, "series/reconcile", `{"name":"bills","scope":["z"],"number":"1","key":""}`, 404, `{"reason":"SCOPE_NOT_FOUND"}`},
		{get, "series/unknown?name=bills", "", 200, `{"left":"0"}`},
		{get, "series/unknown?name=none", "", 404, `{"reason":"SERIES_NOT_FOUND"}`},
	})
}

// TestADefinitionIsShownBeforeItCounts: what the page previews changes nothing, and is what
// a definition then is.
func TestADefinitionIsShownBeforeItCounts(t *testing.T) {
	w := newWorld(t)
	const means = `{"texts":["B-BRA-001","B-BRA-002"],"values":["branch"],"begins_again":""}`
	const is = "name=bills&format=B-%7Bbranch:3%7D-%7Bnumber:3%7D&reset=never"
	walk(t, w.newServer(httpapi.Config{}), []step{
		{get, "series/preview?" + is, "", 200, means},
		{get, "series", "", 200, `{"items":[],"next":""}`},
		{get, "series/preview?name=bills&format=x&reset=never", "", 400, `{"reason":"INVALID_SERIES","field":"definition.format"}`},
		{get, "series/preview?name=bills&format=%7Bmm%7D-%7Bnumber%7D&reset=never", "", 400, `{"reason":"INVALID_SERIES","field":"definition.format"}`},
		{get, "series/preview?name=bills&format=%7Bnumber%7D&reset=x", "", 400, `{"reason":"INVALID_SERIES","field":"reset"}`},
		{post, "series/define", `{"name":"bills","format":"B-{branch:3}-{number:3}","reset":"never"}`, 200, means},
		{get, "series", "", 200, `{"items":[{"name":"bills","format":"B-{branch:3}-{number:3}"}],"next":""}`},
		{get, "series/preview?name=bills&format=%7Bnumber%7D&reset=never", "", 409, `{"reason":"CONCURRENCY"}`},
	})
}

// TestReturn: a range that nobody used can be given back, once.
func TestReturn(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	taken := send(s, post, api+"ranges", `{"tag":"orders"}`)
	wantJSON(t, taken, 200, `{"low":"1","high":"32"}`)
	token := jsonField(t, taken, "token")
	body := fmt.Sprintf(`{"tag":"orders","low":"1","high":"32","token":%q}`, token)
	wantJSON(t, send(s, post, api+"ranges/return", `{"tag":"orders","low":"1","high":"32","token":"AAAAAAAAAAA="}`), 200, `{"returned":false}`)
	wantJSON(t, send(s, post, api+"ranges/return", body), 200, `{"returned":true}`)
	wantJSON(t, send(s, post, api+"ranges/return", body), 200, `{"returned":false}`)
	wantJSON(t, send(s, post, api+"ranges", `{"tag":"orders"}`), 200, `{"low":"1"}`)
}

// TestMembers: each member's role, whether it answers, and how far it is behind.
func TestMembers(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	wantJSON(t, send(s, post, api+"identities/seed", `{"name":"a","value":"1"}`), 200, `{}`)
	answer := send(s, get, api+"overview", "")
	var o overview
	decodeJSON(t, answer, &o)
	want := []member{
		{Tag: "A", Role: "leader", Self: true, Reachable: true, Applied: 2},
		{Tag: "B", Role: "follower", Reachable: true, Applied: 1, Behind: 1},
		{Tag: "C", Role: "follower"},
	}
	for i, m := range o.Members {
		got := member{Tag: m.Tag, Role: m.Role, Self: m.Self, Reachable: m.Reachable, Applied: m.Applied, Behind: m.Behind}
		if len(o.Members) != len(want) || got != want[i] {
			t.Errorf("member %d of %d is %+v, want %+v", i, len(o.Members), got, want[i])
		}
	}
}

// TestPaging walks through a list by pages.
func TestPaging(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	for i := range 5 {
		wantJSON(t, send(s, post, api+"identities/seed", fmt.Sprintf(`{"name":"n%d","value":"1"}`, i)), 200, `{}`)
	}
	var names []string
	for token := ""; ; {
		answer := send(s, get, api+"identities?size=2&token="+url.QueryEscape(token), "")
		var page list[item]
		decodeJSON(t, answer, &page)
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if token = page.Next; token == "" || len(names) > 5 {
			break
		}
	}
	if got := fmt.Sprint(names); got != "[n0 n1 n2 n3 n4]" {
		t.Errorf("%s", got)
	}
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

// TestOnce: the same change under the same request id counts once.
func TestOnce(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	for range 2 {
		wantJSON(t, send(s, post, api+"ids", `{"template":"invoices|","request_id":"page-1"}`), 200, `{"ids":["invoices/1"]}`)
		wantJSON(t, send(s, post, api+"claims/claim", `{"id":"users/x","request_id":"page-2"}`), 200, `{"name":"users/x"}`)
	}
	wantJSON(t, send(s, post, api+"ids", `{"template":"orders|","request_id":"page-1"}`), 409, `{"reason":"REQUEST_ID_REUSED"}`)
}

// TestWithoutQuorum: the node says so, and shows what it knows by itself.
func TestWithoutQuorum(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	wantJSON(t, send(s, post, api+"identities/seed", `{"name":"a","value":"1"}`), 200, `{}`)
	w.loseQuorum()
	walk(t, s, []step{
		{get, "overview", "", 200, `{"has_quorum":false,"alarms":[{"name":"IdnodeNoQuorum","critical":true,"millis":90000}],"leader":""}`},
		{get, "identities", "", 200, `{"items":[{"name":"a","value":"1"}]}`},
		{get, "identities?fresh=true", "", 503, `{"reason":"NO_QUORUM"}`},
		{post, "identities/seed", `{"name":"a","value":"2"}`, 503, `{"reason":"NO_QUORUM"}`},
		{post, "ids", `{"template":"a|"}`, 503, `{"reason":"NO_QUORUM"}`},
		{post, "ids", `{"template":"users/"}`, 200, `{"strategy":"server-side"}`},
		{post, "ids", `{"template":""}`, 200, `{"strategy":"guid"}`},
		{post, "ranges", `{"tag":"a"}`, 503, `{"reason":"NO_QUORUM"}`},
	})
}

// TestRights: a change needs the same right as over the other APIs, of the one
// whom the connection's certificate names.
func TestRights(t *testing.T) {
	w := newWorld(t)
	w.admins = []string{"ops"}
	s := w.newServer(httpapi.Config{Principal: func(state tls.ConnectionState) string { return state.ServerName }})
	as := func(who, call, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(post, "https://a.example:7402"+api+call, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.TLS = &tls.ConnectionState{ServerName: who}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		return answer
	}
	wantJSON(t, as("guest", "identities/seed", `{"name":"a","value":"5"}`), 200, `{"value":"5"}`)
	wantJSON(t, as("guest", "identities/seed", `{"name":"a","value":"1","force":true}`), 403, `{"reason":"PERMISSION_DENIED"}`)
	wantJSON(t, as("guest", "identities/delete", `{"name":"a"}`), 403, `{"reason":"PERMISSION_DENIED"}`)
	wantJSON(t, as("ops", "identities/seed", `{"name":"a","value":"1","force":true}`), 200, `{"value":"1"}`)
	wantJSON(t, as("ops", "identities/delete", `{"name":"a"}`), 200, `{"value":"1"}`)
}
