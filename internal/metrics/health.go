package metrics

import (
	"io"
	"net/http"
)

// Handle adds /metrics, /livez and /readyz by handle, which takes patterns of
// http.ServeMux. ready returns why the node is not ready, in words, or nil, and
// warnings what a person should know besides, ready or not.
func (m *Metrics) Handle(handle func(pattern string, handler http.Handler), ready func() error, warnings func() []string) {
	handle("GET /metrics", m.Handler())
	handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// Whoever answers lives. A node without a quorum must not be restarted for it.
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
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // Who does not read it need not hear it.
}
