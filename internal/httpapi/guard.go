package httpapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/idnode/idnode/internal/calllog"
	"github.com/idnode/idnode/internal/service"
)

// guard is around every handler of the port: it bounds bodies, refuses what a
// foreign page makes a browser send, turns panics into a 500 for that caller
// alone, and writes one line per request.
type guard struct {
	next    http.Handler
	logger  *slog.Logger
	budget  calllog.Budget
	maxBody int64
	// principal may be nil.
	principal func(tls.ConnectionState) string
}

func newGuard(cfg Config, next http.Handler) http.Handler {
	return &guard{next: ownOrigin(next), logger: cfg.Logger, maxBody: cfg.MaxBodyBytes, principal: cfg.Principal}
}

// ownOrigin refuses what a page of another origin makes a browser send, if it
// changes anything. One of RavenDB's calls does although it is a GET, which a
// browser sends for a mere picture.
func ownOrigin(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r
		if strings.HasSuffix(foldPath(r.URL.Path), nextRangePath) {
			change := *r
			change.Method = http.MethodPost
			asked = &change
		}
		if foreign.Check(asked) != nil {
			writeFailure(w, r, failure{
				status: http.StatusForbidden, exception: operationException, message: "a page of another origin may change nothing",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response := &loggedResponse{ResponseWriter: w}
	start := time.Now()
	defer g.done(r, response, start)
	defer g.recover(response, r)
	if r.ContentLength > g.maxBody {
		writeFailure(response, r, failure{
			status: http.StatusRequestEntityTooLarge, exception: argumentException, message: fmt.Sprintf("the body has more than %d bytes", g.maxBody),
		})
		return
	}
	r.Body = http.MaxBytesReader(response, r.Body, g.maxBody)
	inner := withoutDoubleSlash(g.withCaller(r))
	g.next.ServeHTTP(response, inner)
	r.Pattern = inner.Pattern // Whoever is around this one asks which call it was.
}

// withCaller returns a request whose calls are those of who sent it.
func (g *guard) withCaller(r *http.Request) *http.Request {
	caller := service.Caller{Address: r.RemoteAddr}
	if r.TLS != nil && g.principal != nil {
		caller.Principal = g.principal(*r.TLS)
	}
	return r.WithContext(service.WithCaller(r.Context(), caller))
}

// recover ends a panic. One on purpose goes on: it breaks the connection.
func (g *guard) recover(w *loggedResponse, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	g.logger.ErrorContext(r.Context(), "a call panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // The answer has begun: it must not look whole.
	}
	writeFailure(w, r, failureOf(&service.Error{
		Code: service.Internal, Reason: service.ReasonInternal, Message: "internal error; the node's log says more",
	}))
}

// done writes the line of a request: at debug if it went well, at info if the
// caller is at fault, above that if the node is. Parameters and bodies are never
// logged.
func (g *guard) done(r *http.Request, w *loggedResponse, start time.Time) {
	level := levelOf(w.status, w.reason)
	if !g.logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", w.status), slog.Duration("took", time.Since(start)),
	}
	if level > slog.LevelDebug {
		silent, ok := g.budget.Take(start)
		if !ok {
			return
		}
		if silent > 0 {
			attrs = append(attrs, slog.Int("lines_left_out", silent))
		}
	}
	if w.reason != "" {
		attrs = append(attrs, slog.String("reason", w.reason))
	}
	attrs = append(attrs, slog.String("caller", r.RemoteAddr))
	g.logger.LogAttrs(r.Context(), level, "request", attrs...)
}

func levelOf(status int, reason string) slog.Level {
	switch {
	case status < 400:
		return slog.LevelDebug
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, reason == service.ReasonOutcomeUnknown:
		return slog.LevelWarn
	case status >= 500 && status != http.StatusNotImplemented:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// loggedResponse remembers what was answered.
type loggedResponse struct {
	http.ResponseWriter
	// status is 0 before the answer has begun.
	status int
	// reason is that of the error, if the service had one.
	reason string
}

// WriteHeader implements http.ResponseWriter.
func (w *loggedResponse) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *loggedResponse) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *loggedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
