package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/calllog"
	"github.com/idnode/idnode/server/service"
)

// guard is around every handler of the port: it bounds bodies, refuses what a foreign page makes a
// browser send, turns panics into a 500 for that caller alone, and writes one line per request.
type guard struct {
	cfg    Config
	next   http.Handler
	budget calllog.Budget
}

func newGuard(cfg Config, next http.Handler) http.Handler {
	g := &guard{cfg: cfg}
	g.next = g.ownOrigin(next)
	return g
}

// fail answers a request that no handler gets, in the form of its protocol. Without one it is f.
func (g *guard) fail(w http.ResponseWriter, r *http.Request, err *apierror.Error, f failure) {
	if g.cfg.Answer == nil || !g.cfg.Answer(w, r, err) {
		writeFailure(w, r, f)
	}
}

// refuse is fail for an error of the service, which is counted.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err *apierror.Error) {
	if g.cfg.Refused != nil {
		g.cfg.Refused(err.Reason, 1)
	}
	g.fail(w, r, err, failureOf(err))
}

// ownOrigin refuses what a page of another origin makes a browser send, if it
// changes anything. One of RavenDB's calls does although it is a GET, which a
// browser sends for a mere picture, and without TLS with nothing that says so.
func (g *guard) ownOrigin(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, picture := r, false
		if strings.HasSuffix(foldPath(r.URL.Path), nextRangePath) {
			change := *r
			change.Method = http.MethodPost
			asked, picture = &change, ofBrowser(r)
		}
		if picture || foreign.Check(asked) != nil {
			const message = "a page of another origin may change nothing"
			g.fail(w, r, &apierror.Error{Code: apierror.CodePermissionDenied, Reason: apierror.ReasonInvalidRequest, Message: message},
				failure{status: http.StatusForbidden, exception: operationException, message: message})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ofBrowser reports whether a GET has what only browsers send. Without TLS they mark neither
// the site (Sec-Fetch-Site is for secure origins alone) nor, for a picture, a frame or a
// link, the origin. RavenDB's clients say their version in a header, which a page can set
// only after the browser has asked the node, and it says no.
func ofBrowser(r *http.Request) bool {
	h := r.Header
	accept := h.Get("Accept")
	return h.Get("Raven-Client-Version") == "" &&
		(strings.HasPrefix(h.Get("User-Agent"), "Mozilla/") || h.Get("Referer") != "" || h.Get("Sec-Fetch-Dest") != "" ||
			strings.Contains(accept, "text/html") || strings.Contains(accept, "image/"))
}

// strictTransport keeps a browser that was here once from asking without TLS, for a day:
// it is for all ports of the host, on which others may have no TLS.
const strictTransport = "max-age=86400"

// requestBytes is what a request holds, with a small answer: a goroutine and buffers.
const requestBytes = 16 << 10

// connection is the key of a request's net.Conn in its context.
type connection struct{}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.TLS != nil {
		w.Header().Set("Strict-Transport-Security", strictTransport)
	}
	if g.cfg.ClusterID != nil {
		if id := g.cfg.ClusterID(); id != "" {
			w.Header().Set(service.ClusterIDHeader, id)
		}
	}
	response := &loggedResponse{ResponseWriter: w, leader: g.cfg.Leader}
	start := time.Now()
	defer g.done(r, response, start)
	defer g.recover(response, r)
	if r.TLS != nil && g.cfg.Accepts != nil && !g.cfg.Accepts(*r.TLS) {
		w.Header().Set("Connection", "close")
		g.refuse(response, r, apierror.CertificateEnded(r.TLS.PeerCertificates[0]))
		return
	}
	if conn, ok := r.Context().Value(connection{}).(net.Conn); ok && g.cfg.Held != nil {
		if response.held = g.cfg.Held(conn); response.held == nil {
			w.Header().Set("Connection", "close")
			g.refuse(response, r, apierror.ErrConnections)
			return
		}
	}
	end, ok := begin(response.held, r)
	if !ok {
		response.held = nil
		g.refuse(response, r, apierror.ErrOverloaded)
		return
	}
	defer end()
	if err := g.cfg.ClusterID.Check(r.Header.Values(service.ClusterIDHeader)); err != nil {
		g.refuse(response, r, apierror.Of(err))
		return
	}
	if r.ContentLength > maxBodyBytes {
		message := fmt.Sprintf("the body has more than %s", bytesize.Size(maxBodyBytes))
		g.fail(response, r, &apierror.Error{Code: apierror.CodeResourceExhausted, Reason: apierror.ReasonQuota, Message: message},
			failure{status: http.StatusRequestEntityTooLarge, exception: argumentException, message: message})
		return
	}
	r.Body = http.MaxBytesReader(response, r.Body, maxBodyBytes)
	inner := withoutDoubleSlash(g.withCaller(r))
	g.next.ServeHTTP(response, inner)
	r.Pattern = inner.Pattern // The handler around this one asks which call it was.
	if response.cut {
		panic(http.ErrAbortHandler) // What was made is not told: it must not look whole.
	}
}

// begin counts a request for its caller, in flight and in bytes, or refuses it. It returns what
// ends it. Health is not in flight: a supervisor would end a node that is merely busy.
func begin(held *budget.Connection, r *http.Request) (end func(), ok bool) {
	if !held.HoldLast(requestBytes) {
		return nil, false
	}
	health := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
	if !health && !held.Begin() {
		held.Give(requestBytes)
		return nil, false
	}
	return func() {
		held.Give(requestBytes)
		if !health {
			held.End()
		}
	}, true
}

func (g *guard) withCaller(r *http.Request) *http.Request {
	caller := admission.Caller{Address: r.RemoteAddr}
	if r.TLS != nil && g.cfg.Principal != nil {
		caller.Principal = g.cfg.Principal(*r.TLS)
	}
	return r.WithContext(admission.WithCaller(r.Context(), caller))
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
	err := apierror.Of(calllog.Panicked(r.Context(), g.cfg.Logger, p))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // The answer has begun: it must not look whole.
	}
	g.fail(w, r, err, failureOf(err))
}

// done writes the line of a request: at debug if it went well, at info if the caller is at fault,
// above that if the node is. Parameters and bodies are never logged.
func (g *guard) done(r *http.Request, w *loggedResponse, start time.Time) {
	level := levelOf(w.status, w.reason)
	if !g.cfg.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs, ok := g.budget.Line(level, start,
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", w.status), slog.Duration("took", time.Since(start)))
	if !ok {
		return
	}
	if w.reason != "" {
		attrs = append(attrs, slog.String("reason", w.reason))
	}
	attrs = append(attrs, slog.String("caller", r.RemoteAddr))
	g.cfg.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

func levelOf(status int, reason string) slog.Level {
	switch {
	case status < 400:
		return slog.LevelDebug
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, reason == apierror.ReasonOutcomeUnknown:
		return slog.LevelWarn
	case status >= 500 && status != http.StatusNotImplemented:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

type loggedResponse struct {
	http.ResponseWriter
	// status is 0 before the answer has begun.
	status int
	// leader is Config.Leader.
	leader func() (term uint64, address string)
	// reason is that of the error, if the service had one.
	reason string
	// held is the caller's; nil if nothing is counted.
	held *budget.Connection
	// cut says that there was no room for a part of the answer.
	cut bool
}

func (w *loggedResponse) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// begin names the leader of now: a call may have waited for it.
func (w *loggedResponse) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.leader == nil {
		return
	}
	term, address := w.leader()
	w.Header().Set(service.TermHeader, strconv.FormatUint(term, 10))
	if address != "" {
		w.Header().Set(service.LeaderHeader, address)
	}
}

func (w *loggedResponse) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	// What b was made of is as large.
	more := 2*int64(len(b)) - requestBytes
	if more <= 0 {
		return w.ResponseWriter.Write(b)
	}
	if !w.held.Hold(more) {
		w.cut = true
		return 0, apierror.ErrOverloaded
	}
	defer w.held.Give(more)
	return w.ResponseWriter.Write(b)
}

// Failed remembers the reason of an error for the log, for handlers of other packages.
func (w *loggedResponse) Failed(reason string) { w.reason = reason }

// Held returns what is counted for the caller; nil if nothing is.
func (w *loggedResponse) Held() *budget.Connection { return w.held }

// Unwrap is for http.ResponseController.
func (w *loggedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
