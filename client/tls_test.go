package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/client"
)

// TestTLS checks that the node's certificate is held against the host of its
// address.
func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // for its certificate, which names 127.0.0.1
	defer web.Close()
	f := newCluster(t, 0)
	n := &fakeNode{fakeCluster: f, tag: "A"}
	n.start(t, grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	f.nodes = []*fakeNode{n}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	for _, tt := range []struct {
		name string
		tls  *tls.Config
		ok   bool
	}{
		{"the host is named", &tls.Config{RootCAs: roots}, true},
		{"another name", &tls.Config{RootCAs: roots, ServerName: "elsewhere"}, false},
		{"an unknown authority", &tls.Config{RootCAs: x509.NewCertPool()}, false},
		{"plain", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := client.Config{Endpoints: f.addrs(), TLS: tt.tls}
			if !tt.ok {
				cfg.Timeout = 500 * time.Millisecond
			}
			c := connect(t, cfg)
			_, err := c.Next(t.Context(), "orders|")
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, client.ErrNoEndpoint) {
				t.Error(err)
			}
		})
	}
}
