package metrics

import (
	"io"
	"net/http"
)

// Handle adds /metrics, /livez and /readyz by handle, which takes patterns of
// http.ServeMux. names says whether the sender of a request may see the
// names that callers made up; others get pseudonyms. ready returns why the node is not ready, in words, or nil, and
// warnings what a person should know besides, ready or not.
func (m *Metrics) Handle(handle func(pattern string, handler http.Handler), names func(*http.Request) bool, ready func() error, warnings func() []string) {
	named, hidden := m.Handler(), handler(nameless(m.registry))
	handle("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if names(r) {
			named.ServeHTTP(w, r)
			return
		}
		hidden.ServeHTTP(w, r)
	}))
	handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// A node that answers lives. It must not be restarted because it has no quorum.
		say(w, http.StatusOK, "alive")
	}))
	handle("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := http.StatusOK, "ready"
		if err := ready(); err != nil {
			status, text = http.StatusServiceUnavailable, "not ready: "+err.Error()
		}
		for _, warning := range warnings() {
			text += "\nwarning: " + warning
		}
		say(w, status, text)
	}))
}

func say(w http.ResponseWriter, status int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // The caller may have gone.
}
