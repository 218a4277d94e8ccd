// Package httpapi is idnode's HTTP API: the calls that RavenDB's client libraries make for HiLo
// ranges and identities, so that they work against idnode without a change.
//
// It owns what belongs to the protocol: paths, parameters, status codes and RavenDB's error bodies,
// the limits of the server, recovery from panics, and the log of requests. It decides nothing about
// ids.
package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/service"
)

const (
	// maxHeaderBytes holds the longest name there is, escaped.
	maxHeaderBytes = 16 << 10
	// maxBodyBytes is what the calls of package jsonapi need. No other call has a body.
	maxBodyBytes = 128 << 10
	// headerTimeout bounds the TLS handshake and the headers of a request.
	headerTimeout = 5 * time.Second
	// readTimeout bounds a request with its body.
	readTimeout = 10 * time.Second
	// idleTimeout is how long a connection may lie unused: longer than
	// clients keep theirs for, as a rule, so that the client ends it.
	idleTimeout = 2 * time.Minute
)

// Config sets the server up.
type Config struct {
	// TLS is nil for a server without.
	TLS *tls.Config
	// WriteTimeout bounds a call and the reading of its answer; of an answer that is written in
	// parts, each part. It is above the service's bound of a call, so that a slow call still hears why.
	WriteTimeout time.Duration
	// ConnState, if set, is told what becomes of each connection; see http.Server.
	ConnState func(net.Conn, http.ConnState)
	// Held, if set, returns what is counted for the caller of a connection; nil refuses the connection.
	Held func(net.Conn) *budget.Connection
	// Principal names the other side of a connection with TLS; nil names none.
	Principal func(tls.ConnectionState) string
	// Accepts says whether the certificate of a connection is good still; nil for all.
	Accepts func(tls.ConnectionState) bool
	// ClusterID is the node's cluster, which each answer names; nil names none, and lets every call in.
	ClusterID service.ClusterID
	// Leader is the node's term and the leader's HTTP address, which each answer names; nil names none.
	Leader func() (term uint64, address string)
	// Logger gets the log of requests.
	Logger *slog.Logger
	// Refused reports each call that does not come to the service, by its reason; nil for a bare server
	// of which nobody hears.
	Refused func(reason string, calls int)
	// Answer, if set, may answer what is refused before a handler has it, in the form of
	// its own protocol; false says that the request is of none that it knows.
	Answer func(w http.ResponseWriter, r *http.Request, err *apierror.Error) bool
	// Around, if set, returns what is put around the handler of all calls.
	Around func(http.Handler) http.Handler
}

// Server is the server of a node's HTTP port.
type Server struct {
	http *http.Server
	mux  *http.ServeMux
}

// NewServer returns a server with RavenDB's calls on it; Handle adds more.
func NewServer(cfg Config, svc *service.Service) *Server {
	s := NewBareServer(cfg)
	a := &api{service: svc, scheme: "http", refused: cfg.Refused, extend: func(w http.ResponseWriter) {
		// A writer without deadlines, as in tests, needs none set.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(cfg.WriteTimeout))
	}}
	if cfg.TLS != nil {
		a.scheme = "https"
	}
	a.register(s.mux)
	return s
}

// NewBareServer returns a server without calls, for what shall have a port of its own. It speaks
// HTTP/1.1 alone, in which a connection makes one call at a time: net/http bounds no frames of HTTP/2
// that carry nothing.
func NewBareServer(cfg Config) *Server {
	s := &Server{mux: http.NewServeMux()}
	handler := newGuard(cfg, s.mux)
	if cfg.Around != nil {
		handler = cfg.Around(handler)
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	s.http = &http.Server{
		Handler: handler, TLSConfig: cfg.TLS, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: idleTimeout,
		ConnState:   cfg.ConnState,
		Protocols:   http1,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) },
		// It tells of connections that came to nothing: anybody can cause that.
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Handle adds a handler for a pattern of http.ServeMux, inside the limits of the server, the log of
// requests and the recovery from panics. It is called before Serve.
func (s *Server) Handle(pattern string, handler http.Handler) { s.mux.Handle(pattern, handler) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.Handler.ServeHTTP(w, r) }

// Serve serves on a listener, which it closes, until Shutdown or Close, and returns nil then.
func (s *Server) Serve(listener net.Listener) error {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown takes no new connection and no new call, and waits until those under
// way have ended or ctx has; what is left then is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Close ends all connections at once.
func (s *Server) Close() error { return s.http.Close() }
