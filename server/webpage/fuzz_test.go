package webpage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/httpapi"
)

// calls are the page's, those with a body first.
var calls = []string{
	"ids", "ranges", "ranges/return", "identities/seed", "identities/delete", "hilos/raise", "claims/claim", "claims/release",
	"members/lead", "members/remove", "series/define", "overview", "explain", "identity", "hilo", "identities", "hilos", "claims", "etags", "databases", "settings", "roles",
	"series", "series/scopes", "series/number", "series/unknown", "series/preview",
}

const withBody = 11

// FuzzCalls: whatever the page sends, or somebody in its place, is answered: with
// JSON, without a panic, and a call that is refused changes nothing.
func FuzzCalls(f *testing.F) {
	for i, body := range []string{
		`{"template":"invoices|","count":2,"request_id":"r"}`, `{"tag":"Orders","size":10}`,
		`{"tag":"orders","low":"1","high":"32","last":"5","token":"1"}`,
		`{"name":"invoices","value":"42","force":true,"expected":"100"}`, `{"name":"invoices","forget":true}`,
		`{"tag":"orders","max":"100","expected":"32"}`, `{"id":"users/Oren","request_id":"r"}`, `{"id":"users/oren"}`, `{"tag":"B"}`, `{"tag":"C"}`,
		`{"name":"bills","format":"B{year}-{number:3}","reset":"year"}`,
	} {
		f.Add(byte(i), "", body)
	}
	for i := withBody; i < len(calls); i++ {
		f.Add(byte(i), "database=shop&name=invoices&tag=orders&prefix=in&size=2&token=x&sort=value&descending=true&fresh=true&template=users%2F", "")
	}
	f.Fuzz(func(t *testing.T, call byte, query, body string) {
		w := newWorld(t)
		s := w.newServer(httpapi.Config{})
		for _, first := range []string{`{"template":"invoices|"}`, `{"template":"users/ayende","claim":true}`} {
			if answer := send(s, post, api+"ids", first); answer.Code != http.StatusOK {
				t.Fatal(answer.Code, answer.Body)
			}
		}
		name, method := calls[int(call)%len(calls)], get
		if int(call)%len(calls) < withBody {
			method = post
		}
		r := httptest.NewRequest(method, api+name, strings.NewReader(body))
		r.Host, r.URL.RawQuery = "127.0.0.1:7402", query
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		_, before := w.state.Hash()
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		_, after := w.state.Hash()
		if answer.Code == http.StatusInternalServerError || !json.Valid(answer.Body.Bytes()) {
			t.Fatalf("%s?%s %q: %d %q", name, query, body, answer.Code, answer.Body)
		}
		if before != after && (answer.Code >= 400 || method == get) {
			t.Fatalf("%s?%s %q has changed the state: %d %s", name, query, body, answer.Code, answer.Body)
		}
	})
}
