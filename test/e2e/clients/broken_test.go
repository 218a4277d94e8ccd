package clients

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestALargeAnswerIsGivenUp has a node whose answer goes on without a pause and never ends.
func TestALargeAnswerIsGivenUp(t *testing.T) {
	const most = 64 << 20 // A client reads half of it; the rest is in buffers.
	var longest atomic.Int64
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		var sent int64
		for piece := []byte(strings.Repeat(" ", 64<<10)); sent < 2*most; sent += int64(len(piece)) {
			if _, err := w.Write(piece); err != nil {
				break
			}
		}
		longest.Store(max(longest.Load(), sent))
	}))
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		longest.Store(0)
		r := l.start(t)
		got := r.untilFailedAs(t, task{
			Endpoints: []string{strings.TrimPrefix(server.URL, "http://")}, Options: options{TimeoutMs: 2000},
			Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
		}, failure{Type: "OutcomeUnknown"})
		if !failedAs(got, failure{Type: "OutcomeUnknown"}) || longest.Load() > most {
			t.Errorf("after an answer of %d bytes the call ended with %+v", longest.Load(), got)
		}
	})
}

// twoAddresses returns a port at which 127.0.0.1 drops what asks for a connection, and 127.0.0.2 is a node.
func twoAddresses(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(full(t))
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip(err)
	}
	server := httptest.NewUnstartedServer(greeting(giveSeven))
	_ = server.Listener.Close()
	server.Listener = lis
	server.Start()
	t.Cleanup(server.Close)
	return port
}

// TestEachAddressOfANameHasItsTime has a name whose first address does not answer.
func TestEachAddressOfANameHasItsTime(t *testing.T) {
	port := twoAddresses(t)
	t.Run("python", func(t *testing.T) {
		got := pythonProgram(t, `
import socket, sys, idnode
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda _, port, *family, **how: look_up("127.0.0.1", port, *family, **how) + look_up("127.0.0.2", port, *family, **how)
with idnode.Client([f"node.example:{sys.argv[1]}"]) as client:
    print(client.identity("invoices").next())
`, port)
		if got != "7\n" {
			t.Errorf("the call gave %s", got)
		}
	})
	t.Run("node", func(t *testing.T) {
		got := nodeProgram(t, `
import dns from "node:dns";
import net from "node:net";
import { Client } from "./index.js";
net.setDefaultAutoSelectFamily?.(false); // As with Node 18.
const found = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
dns.lookup = (_, { all }, end) => (all ? end(null, found) : end(null, found[0].address, 4));
const client = new Client(["node.example:" + process.argv[1]]);
console.log(String(await client.identity("invoices").next()));
await client.close();
`, port)
		if got != "7\n" {
			t.Errorf("the call gave %s", got)
		}
	})
}

// garbled is a connection that gives no more than noise once it is told so.
type garbled struct {
	net.Conn
	now atomic.Bool
}

func (g *garbled) Read(p []byte) (int, error) {
	if !g.now.Load() {
		return g.Conn.Read(p)
	}
	const noise = "\x17\x03\x03\x00\x20"
	return copy(p, noise+strings.Repeat("x", 0x20)), nil
}

type garbling struct{ net.Listener }

func (l garbling) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &garbled{Conn: conn}, err
}

// TestAnAlertAfterTheHandshakeIsNoRefusal has a node with which the connection breaks after it has
// read a call. TLS says so with an alert; the call may have taken effect.
func TestAnAlertAfterTheHandshakeIsNoRefusal(t *testing.T) {
	certs := harness.Certificates(t, "A")
	server := httptest.NewUnstartedServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		below := conn.(*tls.Conn).NetConn().(*garbled)
		below.now.Store(true)
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("noise was read")
		}
		_, _ = io.Copy(io.Discard, below.Conn) // An end that crosses the request could overtake the alert.
	}))
	server.Listener = garbling{server.Listener}
	server.TLS = &tls.Config{Certificates: trusting(t, certs).Certificates}
	server.StartTLS()
	t.Cleanup(server.Close)
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		var got []outcome
		for try := 0; try < 5 && (len(got) != 1 || got[0].Error == nil || got[0].Error.Type != "OutcomeUnknown"); try++ {
			r.task(t, task{
				Endpoints: []string{strings.TrimPrefix(server.URL, "https://")}, Options: options{TimeoutMs: 1000},
				TLS: tlsOf(certs, certs), Calls: []call{{Call: "identity.next", Args: args{Name: "invoices"}}},
			})
			got = nil
			r.answer(t, &got)
		}
		if len(got) != 1 || got[0].Error == nil || got[0].Error.Type != "OutcomeUnknown" {
			t.Errorf("the call ended with %+v", got)
		}
	})
}
