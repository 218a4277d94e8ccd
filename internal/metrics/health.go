package metrics

import (
	"io"
	"net/http"
)

// Handle adds /metrics, /livez and /readyz by handle, which takes patterns of
// http.ServeMux. ready returns why the node is not ready, in words, or nil.
func (m *Metrics) Handle(handle func(pattern string, handler http.Handler), ready func() error) {
	handle("GET /metrics", m.Handler())
	handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// Whoever answers lives. A node without a quorum must not be restarted for it.
		say(w, http.StatusOK, "alive")
	}))
	handle("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			say(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		say(w, http.StatusOK, "ready")
	}))
}

func say(w http.ResponseWriter, status int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // Who does not read it need not hear it.
}
