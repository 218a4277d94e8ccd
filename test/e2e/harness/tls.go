package harness

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/credentials"
)

// Certificates makes certificates for nodes with these tags and for a client, as an
// operator would, and returns their folder.
func Certificates(t testing.TB, tags ...string) string {
	t.Helper()
	return CertificatesWith(t, nil, tags...)
}

// CertificatesWith does the same for further clients too.
func CertificatesWith(t testing.TB, clients []string, tags ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"certs", dir}
	for _, tag := range tags {
		args = append(args, "--node", tag)
	}
	for _, name := range clients {
		args = append(args, "--client", name)
	}
	if out, err := exec.Command(Binary(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("idnode certs: %v\n%s", err, out)
	}
	return dir
}

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
