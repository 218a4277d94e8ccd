package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/service"
)

// TestCallsForAnotherCluster: every path refuses a request whose header names another cluster, and
// does nothing.
func TestCallsForAnotherCluster(t *testing.T) {
	own, refused := "a0", 0
	w := newWorld(t)
	s := w.newServer("A", Config{
		ClusterID: func() string { return own }, Refused: func(string, int) { refused++ },
	}, "")
	_, before := w.State.Hash()
	routes := append((&api{}).routes(), route{method: http.MethodGet, path: "/livez"}, route{method: http.MethodPost, path: "/nothing"})
	for _, route := range routes {
		target := strings.ReplaceAll(route.path, "{db}", "shop") + "?tag=users&name=users&value=7"
		for _, id := range []string{"b1", "", "A0"} {
			answer := do(s, route.method, target, service.ClusterIDHeader, id)
			if answer.Code != http.StatusPreconditionFailed || !strings.Contains(answer.Body.String(), "OTHER_CLUSTER") {
				t.Errorf("%s for %q: %d %s", target, id, answer.Code, answer.Body)
			}
		}
	}
	if _, after := w.State.Hash(); after != before || refused != 3*len(routes) {
		t.Errorf("state %x before and %x after, %d refusals", before, after, refused)
	}
	const next = "/databases/shop/identity/next?name=users"
	if answer := do(s, http.MethodPost, next, service.ClusterIDHeader, "a0"); answer.Code != http.StatusOK {
		t.Errorf("for its own: %d %s", answer.Code, answer.Body)
	}
	own = ""
	answer := do(s, http.MethodPost, next, service.ClusterIDHeader, "a0")
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "STARTING") {
		t.Errorf("without a cluster: %d %s", answer.Code, answer.Body)
	}
}

// TestEachAnswerNamesTheCluster and the leader as of the answer's begin, also an error that no handler makes.
func TestEachAnswerNamesTheCluster(t *testing.T) {
	var term uint64
	leader := func() (uint64, string) { term++; return term, "b:7402" }
	s := newWorld(t).newServer("A", Config{ClusterID: func() string { return "a0" }, Leader: leader}, "")
	s.Handle("GET /panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	const next = "/databases/shop/identity/next?name=users"
	tests := map[string]struct {
		method, target string
		headers        []string
		status         int
	}{
		"success":        {http.MethodPost, next, nil, http.StatusOK},
		"bad parameter":  {http.MethodPost, "/databases/shop/identity/next", nil, http.StatusBadRequest},
		"no route":       {http.MethodGet, "/nothing", nil, http.StatusBadRequest},
		"a panic":        {http.MethodGet, "/panic", nil, http.StatusInternalServerError},
		"foreign origin": {http.MethodPost, next, []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		"other cluster":  {http.MethodPost, next, []string{service.ClusterIDHeader, "b1"}, http.StatusPreconditionFailed},
	}
	for name, tt := range tests {
		answer := do(s, tt.method, tt.target, tt.headers...)
		if got := answer.Header().Values(service.ClusterIDHeader); answer.Code != tt.status || !slices.Equal(got, []string{"a0"}) {
			t.Errorf("%s: %d with %q", name, answer.Code, got)
		}
		h := answer.Header()
		if h.Get(service.TermHeader) != strconv.FormatUint(term, 10) || h.Get(service.LeaderHeader) != "b:7402" {
			t.Errorf("%s: term %q, leader %q, want %d", name, h.Get(service.TermHeader), h.Get(service.LeaderHeader), term)
		}
	}
}
