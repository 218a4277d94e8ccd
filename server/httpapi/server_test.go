package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/calllog"
	"github.com/idnode/idnode/test/fsmtest"
)

// serve serves on loopback until the test ends, and returns the address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// converse writes raw bytes and returns all that comes back until the server
// ends the connection, which it must do in time.
func converse(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		t.Fatalf("the server keeps the connection after %q", answer)
	}
	return string(answer)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestBounds: whoever is slow, or sends too much, is cut off.
func TestBounds(t *testing.T) {
	// What is in time here must be so on a machine that stands still for a moment.
	short := time.Second
	s := newWorld(t).newServer("A", Config{}, "")
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.IdleTimeout, s.http.MaxHeaderBytes = short, 2*short, short, 1024
	address := serve(t, s)
	const next = "POST /databases/default/identity/next?name=users HTTP/1.1\r\nHost: a\r\n"
	tests := map[string]struct{ sent, want string }{
		"a connection that says nothing":  {"", ""},
		"headers that never end":          {next, ""},
		"headers that are too large":      {next + "X: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"a URL that is too long":          {"GET /" + strings.Repeat("x", 8<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 431 "},
		"a body that is too large":        {next + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxBodyBytes+1), "HTTP/1.1 413 "},
		"a body that is small":            {next + "Content-Length: 2\r\n\r\n{}", "HTTP/1.1 200 "},
		"a body that never comes":         {next + "Content-Length: 50\r\n\r\n", "HTTP/1.1 200 "},
		"a body in pieces without an end": {next + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "HTTP/1.1 200 "},
		"a connection left idle":          {next + "\r\n", "HTTP/1.1 200 "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := converse(t, address, test.sent); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("%.300q, want %q", got, test.want)
			}
		})
	}
}

// TestUnescapedRequest: what clients write without escapes comes through the
// server's own parser too.
func TestUnescapedRequest(t *testing.T) {
	address := serve(t, newWorld(t).newServer("A", Config{}, ""))
	got := converse(t, address,
		"GET /databases/default/hilo/next?tag=Bücher;100%&identityPartsSeparator=/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 201 ") || !strings.Contains(got, `"Prefix":"Bücher;100%/"`) {
		t.Error(got)
	}
}

// TestGRPCOnTheHTTPPort: the status is the one that gRPC's clients take for a call
// that is not there, which is what people hear who have the wrong port.
func TestGRPCOnTheHTTPPort(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "")
	if got := do(s, http.MethodPost, "/idnode.v1.ClusterService/GetStatus", "Content-Type",
		"application/grpc+proto"); got.Code != http.StatusNotFound {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// TestOddDatabases: the server's own parser sees paths as clients write them.
// None gets a 404, on which a client crashes.
func TestOddDatabases(t *testing.T) {
	address := serve(t, newWorld(t).newServer("A", Config{}, ""))
	for path, want := range map[string]string{
		"/databases/a%2Fb/hilo/next?tag=a":     "400 ",
		"/databases/a b/hilo/next?tag=a":       "400 ",
		"/databases/%FF/hilo/next?tag=a":       "400 ",
		"/databases//hilo/next?tag=a":          "307 ", // to /databases/hilo/next
		"/databases/hilo/next?tag=a":           "400 ",
		"/databases/a/../b/hilo/next?tag=a":    "307 ", // to /databases/b/hilo/next
		"/hilo/next?tag=a":                     "400 ",
		"//databases/Default/hilo/next?tag=a":  "201 ",
		"//Databases/Default/HiLo/Next?tag=a":  "201 ",
		"http://a/Databases/x/HiLo/Next?tag=a": "201 ",
		"/Databases/%2F/HiLo/Next?tag=a":       "400 ",
		"/DATABASES/":                          "400 ",
	} {
		got := converse(t, address, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%s: %.300s", path, got)
		}
	}
}

// TestForeignHosts: a page of a site whose name leads to the node is of the node's
// origin, as its browser sees it. It changes nothing, and reads nothing.
func TestForeignHosts(t *testing.T) {
	w := newWorld(t)
	address := serve(t, w.newServer("A", Config{}, ""))
	ask := func(request, host string) string {
		return converse(t, address, request+" HTTP/1.1\r\nHost: "+host+"\r\nOrigin: http://"+host+"\r\nConnection: close\r\n\r\n")
	}
	const seed = "POST /databases/default/identity/seed?name=orders&value=1&force=true"
	if got := ask(strings.Replace(seed, "value=1", "value=1000", 1), address); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatal(got)
	}
	_, before := w.State.Hash()
	for _, request := range []string{
		seed, "GET /databases/default/hilo/next?tag=orders", "GET /Databases/default/HiLo/Next?tag=orders",
		"PUT /databases/default/hilo/return?tag=orders&end=32&last=1", "POST /databases/default/identity/next?name=orders",
		"GET /databases/default/debug/identities", "GET /databases/default/docs?id=Raven/Hilo/orders", "GET /topology?name=default",
	} {
		got := ask(request, "evil.example:7402")
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "INVALID_REQUEST: ") {
			t.Errorf("%s: %s", request, got)
		}
	}
	if _, after := w.State.Hash(); after != before {
		t.Error("the state has changed")
	}
}

// TestHostsOfANodeThatStarts: until it knows a member it cannot tell whose a name is, and
// sends callers to the next node, as with all that it cannot tell yet. Its own name, and
// those it was told, are known at once.
func TestHostsOfANodeThatStarts(t *testing.T) {
	w := newWorld(t)
	address := serve(t, w.newServer("A", Config{}, ""))
	ask := func(host string) string {
		return converse(t, address, "GET /build/version HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	}
	check := func(hosts map[string]string) {
		t.Helper()
		for host, want := range hosts {
			if got := ask(host); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") || want == "503" && !strings.Contains(got, "STARTING: ") {
				t.Errorf("%s: %s, want %s", host, got, want)
			}
		}
	}
	check(map[string]string{"a.example:7402": "200", "IDS.example": "200", "b.example:7402": "200", "evil.example": "403"})
	w.set(func(w *world) { w.known = nil })
	check(map[string]string{"a.example:7402": "200", "IDS.example": "200", "b.example:7402": "503", "evil.example": "503"})
}

// TestPanic: a bad request ends for its caller alone, and the log says why.
// TestHeadersForBrowsers: every answer has them, also one that refuses; HSTS is kept to
// TLS, without which browsers must ignore it, and to a day, for it holds for all ports of
// the host.
func TestHeadersForBrowsers(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "")
	s.Handle("GET /panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	s.Handle("GET /bare", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	bare := NewBareServer(Config{Logger: slog.New(slog.DiscardHandler)})
	for _, ask := range []struct {
		server *Server
		status int
		method string
		target string
		header http.Header
		body   string
	}{
		{s, 200, "GET", "/databases/default/stats", nil, ""},
		{s, 200, "GET", "/bare", nil, ""},
		{s, 400, "GET", "/nowhere", nil, ""},
		{s, 403, "POST", "/databases/default/identity/next?name=a", http.Header{"Origin": {"http://evil.example"}}, ""},
		{s, 413, "POST", "/databases/default/identity/next?name=a", nil, strings.Repeat("x", maxBodyBytes+1)},
		{s, 500, "GET", "/panic", nil, ""},
		{bare, 404, "GET", "/nowhere", nil, ""},
	} {
		for state, hsts := range map[*tls.ConnectionState]string{nil: "", {}: "max-age=86400"} {
			r := httptest.NewRequest(ask.method, "http://a:7402"+ask.target, strings.NewReader(ask.body))
			r.TLS = state
			for name, values := range ask.header {
				r.Header[name] = values
			}
			w := httptest.NewRecorder()
			ask.server.ServeHTTP(w, r)
			got := w.Result().Header
			if w.Code != ask.status || got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Strict-Transport-Security") != hsts {
				t.Errorf("%s %s: %d, want %d, and HSTS %q: %v", ask.method, ask.target, w.Code, ask.status, hsts, got)
			}
		}
	}
}

func TestPanic(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t)
	s := w.newServer("A", Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, "")
	w.Set(func(f *fsmtest.Faults) { f.Boom = true })
	got := do(s, http.MethodPost, "/databases/default/identity/next?name=users")
	if p := decode[problem](t, got, http.StatusInternalServerError); strings.Contains(p.Message, "boom") {
		t.Errorf("the caller hears of the panic: %+v", p)
	}
	if !strings.Contains(log.String(), "panic=boom") {
		t.Errorf("log: %s", log.String())
	}
}

// TestLog: failures are logged by whose fault they are, without what was sent,
// and a flood of them in a few lines.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t)
	s := w.newServer("A", Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, "")
	do(s, http.MethodPost, "/databases/default/identity/next?name=secret")
	if log.Len() > 0 {
		t.Errorf("a call that went well was logged: %s", log.String())
	}
	do(s, http.MethodPost, "/databases/default/identity/next?name=secret||")
	w.fail(errNoQuorum, false)
	for range 20 {
		do(s, http.MethodPost, "/databases/default/identity/next?name=secret")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != calllog.MaxLines || strings.Contains(log.String(), "secret") {
		t.Fatalf("%d lines:\n%s", len(lines), log.String())
	}
	for i, want := range []string{
		"level=INFO msg=request method=POST path=/databases/default/identity/next status=400",
		"level=WARN msg=request",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[1], "reason=NO_QUORUM") {
		t.Errorf("line 1: %s", lines[1])
	}
}

// TestRefused: what is refused before it comes to the service is told, and what
// the service refuses is not told twice.
func TestRefused(t *testing.T) {
	var reasons []string
	s := newWorld(t).newServer("A", Config{Refused: func(reason string, _ int) { reasons = append(reasons, reason) }}, "")
	for _, target := range []string{
		"/databases/default/identity/next", "/databases/a%20b/identity/next?name=a", "/databases/default/identity/next?name=a||",
		"/databases/default/identity/next?name=a", "/databases/default/identity/seed?name=a&value=x",
	} {
		do(s, http.MethodPost, target)
	}
	do(s, http.MethodGet, "/topology?name=a%20b")
	if got := strings.Join(reasons, " "); got != "INVALID_REQUEST INVALID_DATABASE INVALID_REQUEST INVALID_DATABASE" {
		t.Error(got)
	}
}

// TestHandle: what is added later stands beside the calls, in front of the
// answer to unknown paths.
func TestHandle(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "")
	for _, pattern := range []string{"GET /metrics", "/livez", "/readyz", "GET /{$}", "/ui/"} {
		s.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, pattern) }))
	}
	for path, want := range map[string]int{
		"/metrics": 200, "/livez": 200, "/readyz": 200, "/": 200, "/ui/x": 200, "/other": 400, "/build/version": 200,
	} {
		if got := do(s, http.MethodGet, path); got.Code != want {
			t.Errorf("%s: %d, want %d", path, got.Code, want)
		}
	}
}

// TestShutdown answers the call in flight, and takes no further one.
func TestShutdown(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "")
	entered, release := make(chan struct{}), make(chan struct{})
	s.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	}))
	address := serve(t, s)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	var shutdown sync.WaitGroup
	shutdown.Go(func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	for refused := false; !refused; {
		other, err := net.Dial("tcp", address)
		if refused = err != nil; !refused {
			_ = other.Close()
		}
	}
	close(release)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "done" {
		t.Errorf("answer %q", body)
	}
	shutdown.Wait()
}

// TestStatuses: clients send what failed with 408, 502, 503 or 504 to the next
// node, so only what did not happen, or may happen twice, has one of these.
func TestStatuses(t *testing.T) {
	for _, code := range []apierror.Code{
		apierror.CodeInternal, apierror.CodeInvalidArgument, apierror.CodeUnavailable, apierror.CodeAborted, apierror.CodeResourceExhausted,
		apierror.CodeOutOfRange,
		apierror.CodeAlreadyExists, apierror.CodeFailedPrecondition, apierror.CodeNotFound, apierror.CodeDataLoss, apierror.CodePermissionDenied,
	} {
		for _, reason := range []string{"OTHER", apierror.ReasonOutcomeUnknown, apierror.ReasonQuota} {
			f := failureOf(&apierror.Error{Code: code, Reason: reason, Message: "m", Err: errors.New("hidden")})
			goesOn := f.status == 408 || f.status >= 502
			may := code == apierror.CodeUnavailable || code == apierror.CodeResourceExhausted && reason != apierror.ReasonQuota
			if f.status < 400 || f.exception == "" || goesOn != may || strings.Contains(f.message, "hidden") {
				t.Errorf("%s %s: %+v", code, reason, f)
			}
		}
	}
	if f := failureOf(errors.New("hidden")); f.status != 500 || strings.Contains(f.message, "hidden") {
		t.Errorf("an unknown error: %+v", f)
	}
}

// TestARefusedConnectionEnds: the client makes another one, with the certificate that it has now, and
// does not ask on the one that stays refused. It is one of HTTP/1.1, also where the client would rather
// speak HTTP/2.
func TestARefusedConnectionEnds(t *testing.T) {
	own := httptest.NewTLSServer(nil) // Its certificate is one that its client trusts.
	defer own.Close()
	var refuses atomic.Bool
	address := serve(t, newWorld(t).newServer("A", Config{
		TLS:     &tls.Config{Certificates: own.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert},
		Accepts: func(tls.ConnectionState) bool { return !refuses.Load() },
	}, ""))
	transport := own.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.TLSClientConfig.Certificates = true, own.TLS.Certificates
	defer transport.CloseIdleConnections()
	get := func() (status int, text string) {
		// With a POST, which is not tried again by the client itself.
		res, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Post("https://"+address+"/build/version", "",
			strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.ProtoMajor != 1 {
			t.Errorf("it speaks %s", res.Proto)
		}
		return res.StatusCode, string(body)
	}
	usual, _ := get()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		refuses.Store(false) // As with a new certificate.
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	refuses.Store(true)
	if status, text := get(); status != http.StatusServiceUnavailable || !strings.Contains(text, apierror.ReasonCertificateEnded) {
		t.Errorf("what is refused is answered with %d, %s", status, text)
	}
	if status, text := get(); status != usual {
		t.Errorf("the client does not come back: %d, %s", status, text)
	}
}
