package webpage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/httpapi"
)

// FuzzCalls: whatever the page sends, or somebody in its place, is answered without a panic,
// with JSON unless it is a backup, and changes nothing.
func FuzzCalls(f *testing.F) {
	calls := []string{"overview", "explain", "etags", "backup"}
	for i := range calls {
		f.Add(byte(i), "database=shop&prefix=in&pageSize=2&pageToken=x&template=users%2F&separator=%3A", "{}")
		f.Add(byte(i), "prefix=%ff", `{"consistency":"CONSISTENCY_STALE"}`)
	}
	f.Fuzz(func(t *testing.T, call byte, query, body string) {
		w := newWorld(t)
		w.seed("invoices", 7)
		s := w.newServer(httpapi.Config{})
		name, method := calls[int(call)%len(calls)], get
		if name == "backup" {
			method = post
		}
		r := httptest.NewRequest(method, api+name, strings.NewReader(body))
		r.Host, r.URL.RawQuery = "127.0.0.1:7402", query
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		_, before := w.State.Hash()
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		_, after := w.State.Hash()
		file := name == "backup" && answer.Code == http.StatusOK
		if answer.Code == http.StatusInternalServerError || !file && !json.Valid(answer.Body.Bytes()) || before != after {
			t.Fatalf("%s?%s %q: %d %q, state %x, before %x", name, query, body, answer.Code, answer.Body, after, before)
		}
	})
}
