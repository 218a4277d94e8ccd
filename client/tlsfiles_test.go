package client_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/client"
)

// authority signs certificates.
type authority struct {
	tls.Certificate
	pem []byte
}

// sign returns a certificate, of the authority or of itself, and its PEM texts.
func (a *authority) sign(t *testing.T, name string, end time.Time) (own tls.Certificate, cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: end.Add(-48 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: a == nil, BasicConstraintsValid: true,
	}
	parent, signer := leaf, any(private)
	if a != nil {
		parent, signer = a.Leaf, a.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
	own, err = tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return own, cert, key
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	own, text, _ := (*authority)(nil).sign(t, name, time.Now().Add(24*time.Hour))
	return &authority{own, text}
}

// serveTLS starts a node whose certificate an authority signs, and which wants one of it.
func (a *authority) serveTLS(t *testing.T, f *fakeCluster) *fakeNode {
	t.Helper()
	own, _, _ := a.sign(t, "node", time.Now().Add(24*time.Hour))
	pool := x509.NewCertPool()
	pool.AddCert(a.Leaf)
	n := &fakeNode{fakeCluster: f, tag: "A"}
	n.start(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	return n
}

// files are the names of TLS files in a folder of the test.
func (a *authority) files(t *testing.T, into client.TLSFiles, end time.Time) client.TLSFiles {
	t.Helper()
	if into.CA == "" {
		dir := t.TempDir()
		into = client.TLSFiles{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	}
	_, cert, key := a.sign(t, "clerk", end)
	for name, text := range map[string][]byte{into.CA: a.pem, into.Cert: cert, into.Key: key} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return into
}

// TestTLSFilesAreReadAgain: the authority changes on both sides while the client lives; before, its file is
// broken for a while.
func TestTLSFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 0)
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	end := time.Now().Add(24 * time.Hour)
	files := first.files(t, client.TLSFiles{}, end)
	one, two := first.serveTLS(t, f), second.serveTLS(t, f)
	one.advertised, two.advertised = "node:7400", "node:7400"
	f.nodes = []*fakeNode{one}
	b := &switchboard{to: one.addr}
	var log logged
	c := connect(t, client.Config{
		Endpoints: []string{"node:7400"}, TLSFiles: files, TLS: &tls.Config{ServerName: "127.0.0.1"}, Dial: b.dial,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := c.Claim(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.CA, []byte("half of a fil"), 0o600); err != nil {
		t.Fatal(err)
	}
	client.AgeFiles(c)
	b.lead(one.addr)
	if err := c.Claim(t.Context(), "two"); err != nil {
		t.Errorf("with a broken file: %v", err)
	}
	if !log.has("level=WARN") || !log.has(files.CA) {
		t.Error("the log does not name the broken file")
	}
	second.files(t, files, end)
	client.AgeFiles(c)
	b.lead(two.addr)
	if err := c.Claim(t.Context(), "three"); err != nil {
		t.Errorf("with another authority: %v", err)
	}
}

// TestCertificatesOfTheClient: an error names the certificate that a node may not accept.
func TestCertificatesOfTheClient(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 0)
	a := newAuthority(t, "authority")
	n := a.serveTLS(t, f)
	f.nodes = []*fakeNode{n}
	ended := a.files(t, client.TLSFiles{}, time.Now().Add(-time.Hour))
	for _, tt := range []struct {
		files client.TLSFiles
		says  string
	}{
		{ended, "CN=clerk, which has ended at"},
		{client.TLSFiles{CA: ended.CA}, "the client has none"},
	} {
		c := connect(t, client.Config{Endpoints: f.addrs(), TLSFiles: tt.files, Timeout: time.Second})
		var err error
		for range 10 { // A busy machine may need more than the time of a call for a handshake.
			if err = c.Claim(t.Context(), "one"); err == nil || strings.Contains(err.Error(), tt.says) {
				break
			}
		}
		if !errors.Is(err, client.ErrNoEndpoint) || !strings.Contains(err.Error(), tt.says) {
			t.Error(err)
		}
	}
}

// TestTLSFilesAtTheBegin: New refuses files that cannot be used.
func TestTLSFilesAtTheBegin(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "authority")
	good := a.files(t, client.TLSFiles{}, time.Now().Add(time.Hour))
	for name, files := range map[string]client.TLSFiles{
		"no file":        {CA: good.CA + "x"},
		"no certificate": {CA: good.Key},
		"no key":         {CA: good.CA, Cert: good.Cert},
		"no pair":        {CA: good.CA, Cert: good.CA, Key: good.Key},
	} {
		c, err := client.New(t.Context(), client.Config{Endpoints: []string{"127.0.0.1:1"}, TLSFiles: files})
		if e := new(client.Error); !errors.As(err, &e) || e.Reason != "INVALID_CONFIG" || bytes.Contains([]byte(err.Error()), []byte("PRIVATE")) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
