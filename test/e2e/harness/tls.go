package harness

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/credentials"
)

// ClientTLS trusts the CA in certs and shows the certificate with this name;
// an empty name shows none.
func ClientTLS(t testing.TB, certs, name string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	cfg := &tls.Config{RootCAs: pool}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(certs, name+".crt"), filepath.Join(certs, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg
}

func clientCredentials(t testing.TB, certs, name string) credentials.TransportCredentials {
	t.Helper()
	return credentials.NewTLS(ClientTLS(t, certs, name))
}
