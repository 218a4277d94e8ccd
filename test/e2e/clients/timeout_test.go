package clients

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestADrippingAnswerIsGivenUp has a node that answers with a byte now and then, for much
// longer than a call may take.
func TestADrippingAnswerIsGivenUp(t *testing.T) {
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for range 200 {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ticks.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		begin := time.Now()
		r.task(t, task{
			Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 1000, TryTimeoutMs: 500},
			Calls: slices.Repeat([]call{{Call: "identity.next", Args: args{Name: "invoices"}}}, 2),
		})
		var got []outcome
		r.answer(t, &got)
		// A client begins slowly: its first call may end before there is a connection.
		if len(got) != 2 || got[1].Error == nil || got[1].Error.Type != "OutcomeUnknown" {
			t.Errorf("%d calls, the last ended with %+v", len(got), got[len(got)-1].Error)
		}
		if took := time.Since(begin); took > 9*time.Second {
			t.Errorf("two calls of a second took %s", took)
		}
	})
}

// TestCallsEndWithASilentNode has a node that takes connections and never answers. What a
// client asks of it before a call, where the log is, is part of the call's time.
func TestCallsEndWithASilentNode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the client leaves.
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		var took time.Duration
		for _, n := range []int{1, 10} { // The first call is not measured: a client begins slowly.
			begin := time.Now()
			r.task(t, task{
				Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 100},
				Calls: slices.Repeat([]call{{Call: "identity.next", Args: args{Name: "invoices"}}}, n),
			})
			var got []outcome
			r.answer(t, &got)
			took = time.Since(begin)
		}
		if took > 6*time.Second {
			t.Errorf("ten calls of 0.1 s took %s", took)
		}
	})
}

// TestANodeThatWasNotReachedDidNothing has an endpoint at which no connection is ever
// made, as that of a machine which is gone. The last try has less time than a connection.
func TestANodeThatWasNotReachedDidNothing(t *testing.T) {
	c := testCase{
		Options: options{TimeoutMs: 2000, TryTimeoutMs: 500},
		Calls:   []call{{Call: "identity.next", Args: args{Name: "invoices"}, Error: &failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}}},
	}
	endpoints := []string{full(t)}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		r.task(t, task{Endpoints: endpoints, Options: c.Options, Calls: c.Calls})
		var got []outcome
		r.answer(t, &got)
		judge(t, c, newScript(c), got)
	})
	t.Run("go", func(t *testing.T) { judge(t, c, newScript(c), callGo(t, endpoints, c)) })
}

// TestASilentNodeIsNoEndpoint: it takes connections, and no node has answered, whatever is asked.
func TestASilentNodeIsNoEndpoint(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	c := testCase{Options: options{TimeoutMs: 1500}, Calls: []call{
		{Call: "identity.next", Args: args{Name: "invoices"}},
		{Call: "identity.get", Args: args{Name: "invoices"}},
		{Call: "next", Args: args{Template: "users/"}},
		{Call: "hilo", Args: args{Tag: "users"}},
		{Call: "snowflake.next", Args: args{Name: "orders"}},
	}}
	for i := range c.Calls {
		c.Calls[i].Error = &failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		r.task(t, task{Endpoints: []string{lis.Addr().String()}, Options: c.Options, Calls: c.Calls})
		var got []outcome
		r.answer(t, &got)
		judge(t, c, newScript(c), got)
	})
}

// full listens with a queue that is full: the system drops what asks for a connection.
func full(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue takes ten connections")
	return ""
}

// TestARefusedCertificateDidNothing shows a client's certificate that the node does not
// trust, which a client learns after it has sent its request. The time of a call may be
// over in the middle of a try, which is then unknown: such a call is made again.
func TestARefusedCertificateDidNothing(t *testing.T) {
	certs, others := harness.Certificates(t, "A"), harness.Certificates(t, "A")
	endpoint := refuse(t, trusting(t, certs))
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		want := failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}
		got := r.untilFailedAs(t, task{
			Endpoints: []string{endpoint}, Options: options{TimeoutMs: 1000}, TLS: tlsOf(certs, others),
			Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
		}, want)
		if !failedAs(got, want) {
			t.Errorf("five calls, the last of which ended with %+v", got[0].Error)
		}
	})
}

// refuse listens, and refuses every certificate with an alert. It keeps the connection
// until the client ends it: an end that crosses the request could overtake the alert.
func refuse(t *testing.T, config *tls.Config) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				if tls.Server(conn, config).Handshake() == nil {
					t.Error("a certificate was not refused")
				}
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { _ = lis.Close(); all.Wait() })
	return lis.Addr().String()
}

// trusting is the TLS of a node: certs hold its certificate and the CA of its clients.
func trusting(t *testing.T, certs string) *tls.Config {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(certs, "A.crt"), filepath.Join(certs, "A.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}
