package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest: whatever a client sends is answered: with JSON, without a panic,
// and a call that is refused changes nothing.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"GET /databases/shop/hilo/next?tag=users&lastBatchSize=32&lastRangeAt=2026-11-21T13:15:49.4867952Z&identityPartsSeparator=/&lastMax=0",
		"PUT /databases/shop/hilo/return?tag=users&end=32&last=5",
		"POST /databases/shop/identity/next?name=users%7C&raft-request-id=r",
		"POST /databases/shop/identity/seed?name=users|&value=100&force=true",
		"GET /databases/shop/debug/identities?start=0&pageSize=3",
		"GET /databases/shop/docs?id=Raven/Hilo/users",
		"GET /databases/shop/configuration/client",
		"GET /databases/shop/stats",
		"GET /databases/shop/healthcheck",
		"GET /topology?name=shop",
		"GET /cluster/topology?url=http://a:7402",
		"GET /build/version",
		"GET /Cluster/Node-Info",
		"HEAD //databases//hilo/next?tag=%zz;%",
	} {
		f.Add([]byte(target + " HTTP/1.1\r\nHost: a:7402\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(data))))
		if err != nil {
			return
		}
		world := newWorld(t)
		server := world.newServer("A", Config{}, "")
		if w := do(server, "POST", "/databases/shop/identity/next?name=users|"); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		_, before := world.State.Hash()
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		_, after := world.State.Hash()
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %q: %d %s", r.Method, r.RequestURI, w.Code, w.Body)
		}
		if w.Code >= 400 && before != after {
			t.Fatalf("%s %q was refused with %d and has changed the state", r.Method, r.RequestURI, w.Code)
		}
		if w.Body.Len() > 0 && w.Code != http.StatusTemporaryRedirect && w.Code != http.StatusMovedPermanently && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %q: %d and no JSON: %q", r.Method, r.RequestURI, w.Code, w.Body)
		}
	})
}

// FuzzParams: what was escaped is read as it was, and what was not is left alone.
func FuzzParams(f *testing.F) {
	f.Add("Users/1", "tag=a&TAG=b;c%")
	f.Add("100 %\xff+&=", "%%%%41&=&name")
	f.Fuzz(func(t *testing.T, value, raw string) {
		if got := parseParams("x="+url.QueryEscape(value), nil).values["x"]; len(got) != 1 || got[0] != value {
			t.Fatalf("%q was read as %q", value, got)
		}
		for name, values := range parseParams(raw, nil).values {
			if name != strings.ToLower(name) || len(values) == 0 {
				t.Fatalf("%q: parameter %q with %q", raw, name, values)
			}
		}
	})
}
