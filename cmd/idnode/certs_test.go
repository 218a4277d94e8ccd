package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/server/tlsconf"
)

func TestCertsWrongUsage(t *testing.T) {
	if got := command(t, "certs", t.TempDir()); got.code != exitUsage ||
		!strings.Contains(got.stderr, "--node TAG or --client NAME is required") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "certs", t.TempDir(), "--node", "toolong"); got.code != exitFailed || !strings.Contains(got.stderr, "no node tag") {
		t.Errorf("%+v", got)
	}
	dir := t.TempDir()
	command(t, "certs", dir, "--node", "A")
	if got := command(t, "certs", dir, "--node", "A"); got.code != exitFailed ||
		!strings.Contains(got.stderr, "A.crt; --overwrite replaces it") {
		t.Errorf("%+v", got)
	}
	// What cannot be looked at is not there already.
	if got := command(t, "certs", filepath.Join(dir, "A.crt"), "--node", "A"); got.code != exitFailed ||
		!strings.Contains(got.stderr, "not a directory") || strings.Contains(got.stderr, "exists") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "backup", filepath.Join(dir, "A.crt", "x")); got.code != exitFailed ||
		!strings.Contains(got.stderr, "not a directory") || strings.Contains(got.stderr, "exists") {
		t.Errorf("%+v", got)
	}
}

// TestACertificateForAClientAlone: nodes that are there already are left alone, and so
// is what the first client has.
func TestACertificateForAClientAlone(t *testing.T) {
	dir := t.TempDir()
	if got := command(t, "certs", dir, "--node", "A"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := command(t, "certs", dir, "--node", "B"); !strings.Contains(got.stdout, "--admin client\n") {
		t.Errorf("who is the administrator is not said: %q", got.stdout)
	}
	first, err := os.ReadFile(filepath.Join(dir, "client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := command(t, "certs", dir, "--client", "webshop", "--overwrite"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	files := tlsconf.Files{Cert: filepath.Join(dir, "webshop.crt"), Key: filepath.Join(dir, "webshop.key"), CA: filepath.Join(dir, "ca.crt")}
	if _, err := tlsconf.LoadClient(files); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "client.crt")); err != nil || string(now) != string(first) {
		t.Errorf("the first client's certificate was replaced: %v", err)
	}
}

// TestTLS makes certificates with one command and uses them with another: by
// flags, and by the environment that a container shares with its node.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	if got := command(t, "certs", dir, "--node", "A"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	material, err := tlsconf.LoadServer(tlsconf.Files{Cert: file("A.crt"), Key: file("A.key"), CA: file("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	serving := answer(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
	node := newFakeNode(t, serving, grpc.Creds(credentials.NewTLS(material.Server())))
	tests := []struct {
		name  string
		env   []string
		flags []string
		code  int
	}{
		{"flags", nil, []string{"--tls-ca", file("ca.crt"), "--tls-cert", file("client.crt"), "--tls-key", file("client.key")}, exitOK},
		{"environment", []string{
			"IDNODE_TLS_CA=" + file("ca.crt"), "IDNODE_TLS_CERT=" + file("A.crt"),
			"IDNODE_TLS_KEY=" + file("A.key"),
		}, nil, exitOK},
		{
			"the node's tag as server name",
			[]string{"IDNODE_TLS_SERVER_NAME=A"},
			[]string{"--tls-ca", file("ca.crt"), "--tls-cert", file("client.crt"), "--tls-key", file("client.key")},
			exitOK,
		},
		{
			"another server name", nil,
			[]string{
				"--tls-server-name", "B", "--tls-ca", file("ca.crt"), "--tls-cert", file("client.crt"), "--tls-key",
				file("client.key"),
			},
			exitUnavailable,
		},
		{"no client certificate", nil, []string{"--tls-ca", file("ca.crt")}, exitUnavailable},
		{"no TLS", nil, nil, exitUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := commandEnv(t, tt.env, append([]string{"health", "--endpoint", node.addr}, tt.flags...)...)
			if got.code != tt.code {
				t.Errorf("%+v, want code %d", got, tt.code)
			}
		})
	}
}

// TestTheOtherPort: an endpoint that is the HTTP port, or that wants TLS, or has none, is told
// as that, and nothing is left open.
func TestTheOtherPort(t *testing.T) {
	dir := t.TempDir()
	command(t, "certs", dir, "--node", "A")
	file := func(name string) string { return filepath.Join(dir, name) }
	material, err := tlsconf.LoadServer(tlsconf.Files{Cert: file("A.crt"), Key: file("A.key"), CA: file("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	page := func(secure bool) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "another content type", http.StatusUnsupportedMediaType)
		}))
		s.EnableHTTP2, s.TLS, s.Config.ErrorLog = true, material.Server("h2"), log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	plain := newFakeNode(t, answer(nil)).addr
	secure := newFakeNode(t, answer(nil), grpc.Creds(credentials.NewTLS(material.Server()))).addr
	tls := []string{"--tls-ca", file("ca.crt"), "--tls-cert", file("client.crt"), "--tls-key", file("client.key")}
	for _, tt := range []struct {
		name, endpoint string
		flags          []string
		want           string
	}{
		{"no TLS to a node with TLS", secure, nil, "does it want TLS (--tls-ca, --tls-cert, --tls-key)?"},
		{"TLS to a node without", plain, tls, "without --tls-ca"},
		{"the HTTP port", page(false), nil, "is this the gRPC port of a node"},
		{"no TLS to the HTTP port with TLS", page(true), nil, "is this the gRPC port of a node"},
		{"TLS to the HTTP port without", page(false), tls, "without --tls-ca"},
		{"the HTTP port with TLS", page(true), tls, "is this the gRPC port of a node (7400), and not its HTTP port (7402)?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := command(t, append([]string{"identity", "seed", "users", "5", "--endpoint", tt.endpoint}, tt.flags...)...)
			if got.code == exitOK || !strings.Contains(got.stderr, tt.want) || strings.Contains(got.stderr, reasonUnknown) ||
				strings.Contains(got.stderr, "another content type") {
				t.Errorf("%+v, want %q", got, tt.want)
			}
		})
	}
}
