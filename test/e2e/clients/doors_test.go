package clients

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
)

// door is an address at which no node of the client's kind answers.
type door struct {
	endpoint string
	// tls has the client use TLS.
	tls bool
}

// doors opens those that a client over HTTP finds: nodes' gRPC, web servers of other kinds, and TLS
// on one side alone.
func doors(t *testing.T, certs string) map[string]door {
	t.Helper()
	all := map[string]door{
		"gRPC":         {endpoint: newScript(testCase{}).serveGRPC(t, 1)[0]},
		"TLS to plain": {endpoint: newScript(testCase{}).serveHTTP(t, 1)[0], tls: true},
		"TLS to gRPC":  {endpoint: newScript(testCase{}).serveGRPC(t, 1)[0], tls: true},
	}
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"400": {http.StatusBadRequest, "bad request"}, "404": {http.StatusNotFound, `{"error":"not found"}`}, "415": {http.StatusUnsupportedMediaType, ""},
		"a redirection": {http.StatusTemporaryRedirect, ""}, "a page": {http.StatusOK, "<html>"}, "JSON": {http.StatusOK, `{"status":"ok"}`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.body))
		}))
		t.Cleanup(server.Close)
		all[name] = door{endpoint: strings.TrimPrefix(server.URL, "http://")}
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: trusting(t, certs).Certificates}
	server.StartTLS()
	t.Cleanup(server.Close)
	all["plain to TLS"] = door{endpoint: strings.TrimPrefix(server.URL, "https://")}
	return all
}

// goDoors opens those that the Go client finds.
func goDoors(t *testing.T, certs string) map[string]door {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: trusting(t, certs).Certificates}, true
	server.StartTLS()
	t.Cleanup(server.Close)
	return map[string]door{
		"HTTP":         {endpoint: newScript(testCase{}).serveHTTP(t, 1)[0]},
		"TLS to plain": {endpoint: newScript(testCase{}).serveGRPC(t, 1)[0], tls: true},
		"TLS to HTTP":  {endpoint: newScript(testCase{}).serveHTTP(t, 1)[0], tls: true},
		"HTTP/2":       {endpoint: strings.TrimPrefix(server.URL, "https://"), tls: true},
	}
}

// TestAWrongDoorGetsNoCallGo is the same for the Go client.
func TestAWrongDoorGetsNoCallGo(t *testing.T) {
	certs := harness.Certificates(t, "A")
	for name, d := range goDoors(t, certs) {
		t.Run(name, func(t *testing.T) {
			config := client.Config{Endpoints: []string{d.endpoint}, Timeout: forever * time.Millisecond}
			if d.tls {
				config.TLS = &tls.Config{RootCAs: trusting(t, certs).ClientCAs}
			}
			cl, err := client.New(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), answerWithin)
			defer cancel()
			_, err = cl.Identity("invoices").Next(ctx)
			if got := *goFailure(err); got != (failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call ended with %v", err)
			}
		})
	}
}

// forever is a time that no call should need; the runner is given up before.
const forever = 600_000

// TestAWrongDoorGetsNoCall: what is no node is found out before a call is sent, and the call
// fails then and not when its time is over.
func TestAWrongDoorGetsNoCall(t *testing.T) {
	certs := harness.Certificates(t, "A")
	all := doors(t, certs)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for name, d := range all {
			knock := task{
				Endpoints: []string{d.endpoint}, Options: options{TimeoutMs: forever},
				Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
			}
			if d.tls {
				knock.TLS = tlsOf(certs, certs)
			}
			var got []outcome
			r.task(t, knock)
			r.answer(t, &got)
			if !failedAs(got, failure{Type: "NoEndpoint", Reason: "NO_ENDPOINT"}) {
				t.Errorf("%s: the call ended with %+v", name, got)
			}
		}
	})
}

// TestAWrongDoorAmongEndpoints is passed by.
func TestAWrongDoorAmongEndpoints(t *testing.T) {
	all := doors(t, harness.Certificates(t, "A"))
	c := testCase{
		Calls:  []call{{Call: "identity.next", Args: args{Name: "invoices"}, Values: []string{"7"}}},
		Server: []exchange{{Method: "NextIdentity", Answer: json.RawMessage(seven)}},
	}
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		for name, d := range all {
			if d.tls {
				continue // The node that is left has none.
			}
			t.Run(name, func(t *testing.T) {
				s := newScript(c)
				var got []outcome
				r.task(t, task{Endpoints: append([]string{d.endpoint}, s.serveHTTP(t, 1)...), Calls: c.Calls})
				r.answer(t, &got)
				judge(t, c, s, got)
			})
		}
	})
}
