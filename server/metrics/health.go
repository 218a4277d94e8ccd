package metrics

import (
	"io"
	"net/http"
	"sync"

	"github.com/idnode/idnode/server/hostcheck"
)

// Health is what a node says of itself, in words.
type Health struct {
	// Alive returns why the node hangs, Ready why it is not ready; or nil.
	Alive, Ready func() error
	// Warnings returns what a person should know besides, ready or not.
	Warnings func() []string
}

// Handle adds /metrics, /livez and /readyz by handle, which takes patterns of http.ServeMux. names
// says whether the sender of a request may see the names that callers made up; others get
// pseudonyms. caller names the sender, of whom one scrape is answered at a time. checkHost judges
// the host name of a scrape; see package hostcheck.
func (m *Metrics) Handle(handle func(pattern string, handler http.Handler), names func(*http.Request) bool,
	caller func(*http.Request) string, checkHost func(string) error, health Health,
) {
	var scraping sync.Map // by caller
	named, hidden := m.Handler(), handler(nameless(m.registry))
	handle("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := hostcheck.Check(r, checkHost); err != nil {
			say(w, http.StatusForbidden, err.Error())
			return
		}
		who := caller(r)
		if _, busy := scraping.LoadOrStore(who, nil); busy {
			say(w, http.StatusServiceUnavailable, "a scrape of this caller is answered now")
			return
		}
		defer scraping.Delete(who)
		answer := hidden
		if names(r) {
			answer = named
		}
		answer.ServeHTTP(w, r)
	}))
	handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// A node must not be restarted because it has no quorum.
		if err := health.Alive(); err != nil {
			say(w, http.StatusServiceUnavailable, "not alive: "+err.Error())
			return
		}
		say(w, http.StatusOK, "alive")
	}))
	handle("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := http.StatusOK, "ready"
		if err := health.Ready(); err != nil {
			status, text = http.StatusServiceUnavailable, "not ready: "+err.Error()
		}
		for _, warning := range health.Warnings() {
			text += "\nwarning: " + warning
		}
		say(w, status, text)
	}))
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", "GET, HEAD")
			say(w, http.StatusMethodNotAllowed, "there is no "+r.Method+" of this path")
		}))
	}
}

func say(w http.ResponseWriter, status int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // The caller may have gone.
}
