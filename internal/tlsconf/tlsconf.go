// Package tlsconf is the one home for TLS: it turns a certificate, a key and a
// CA from files into the *tls.Config of each listener and each dialler, says
// which nodes a certificate names, and makes certificates for a new cluster.
//
// A node's certificate carries its node tag as a DNS name. Between nodes that
// name is what is checked, not the host name: a node is who it is wherever it
// runs. Node tags have no dots and are at most four letters, so a host name of
// that form in a certificate would name a node too; MakeCerts refuses them.
//
// Certificates sit behind callbacks, which leaves room for replacing them in a
// running process; nothing does so yet. The package neither listens nor dials.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

var (
	// ErrHalfGiven means a certificate without its key, a key without its
	// certificate, or a CA where a certificate is needed as well.
	ErrHalfGiven = errors.New("tlsconf: certificate and key go together")
	// ErrNoCA means a configuration for use between nodes was asked for without
	// a CA: nothing could then tell a member from a stranger.
	ErrNoCA = errors.New("tlsconf: connections between nodes need a CA")
)

// Files names the PEM files of one party; empty names are files not given.
type Files struct {
	// Cert is the certificate, with intermediates after it if there are any.
	Cert string
	// Key is the certificate's private key.
	Key string
	// CA holds the certificates of those who sign for the other side.
	CA string
}

// Empty says that no file is given: TLS is not wanted.
func (f Files) Empty() bool { return f == Files{} }

// Material is what was read from Files. It is safe for concurrent use.
type Material struct {
	// cert is nil for a client that only checks the server.
	cert atomic.Pointer[tls.Certificate]
	ca   *x509.CertPool
}

// LoadServer reads the files of a node: certificate and key are needed, the CA
// is not. Errors name the file at fault.
func LoadServer(f Files) (*Material, error) {
	if f.Cert == "" {
		return nil, fmt.Errorf("%w: no certificate is given", ErrHalfGiven)
	}
	return load(f)
}

// LoadClient reads the files of an application or a command: each of a pair of
// certificate and key, and a CA, may be missing. Without a CA the system's
// roots decide about the server. Errors name the file at fault.
func LoadClient(f Files) (*Material, error) { return load(f) }

func load(f Files) (*Material, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("%w: certificate %q, key %q", ErrHalfGiven, f.Cert, f.Key)
	}
	m := &Material{}
	if f.Cert != "" {
		cert, err := loadPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		m.cert.Store(cert)
	}
	if f.CA != "" {
		pool, err := loadPool(f.CA)
		if err != nil {
			return nil, err
		}
		m.ca = pool
	}
	return m, nil
}

// loadPair reads the two files one after the other, so that an error can name
// the right one.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: key: %w", err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return &cert, nil
}

func loadPool(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tlsconf: CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("tlsconf: CA %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// HasCA says whether a CA was given.
func (m *Material) HasCA() bool { return m.ca != nil }

// Leaf returns the node's or client's own certificate, or nil.
func (m *Material) Leaf() *x509.Certificate {
	if cert := m.cert.Load(); cert != nil {
		return cert.Leaf
	}
	return nil
}

// Server returns the configuration of a listener that applications use, with
// TLS 1.2 or later. With a CA every client must show a certificate signed by
// it.
func (m *Material) Server() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: m.getCertificate}
	if m.ca != nil {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs = m.ca
	}
	return cfg
}

// Client returns the configuration of an application, with TLS 1.2 or later.
// The server's certificate must name the host dialled, or serverName if that is
// not empty.
func (m *Material) Client(serverName string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: m.ca, ServerName: serverName,
		GetClientCertificate: m.getClientCertificate,
	}
}

// PeerServer returns the configuration of the Raft listener, with TLS 1.3. The
// dialler must show a certificate signed by the CA; who it is, is for the
// caller to compare with PeerTags. It returns ErrNoCA.
func (m *Material) PeerServer() (*tls.Config, error) {
	if m.ca == nil {
		return nil, ErrNoCA
	}
	cfg := m.Server()
	cfg.MinVersion = tls.VersionTLS13
	return cfg, nil
}

// PeerClient returns the configuration for dialling the node with a tag, on its
// Raft or its gRPC port, with TLS 1.3. The certificate there must be signed by
// the CA and name the tag; host names do not matter. It returns ErrNoCA.
func (m *Material) PeerClient(tag string) (*tls.Config, error) {
	if m.ca == nil {
		return nil, ErrNoCA
	}
	if !isTag(tag) {
		// An empty server name would be filled in by gRPC with the address.
		return nil, fmt.Errorf("tlsconf: %q is no node tag", tag)
	}
	// A tag is a valid host name of one label, so the usual check of the server
	// name does just what is wanted, also when a session is resumed.
	cfg := m.Client(tag)
	cfg.MinVersion = tls.VersionTLS13
	return cfg, nil
}

func (m *Material) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := m.cert.Load(); cert != nil {
		return cert, nil
	}
	return nil, ErrHalfGiven
}

// getClientCertificate answers a server that asks for a certificate. The empty
// certificate means there is none; the server decides what that is worth.
func (m *Material) getClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if cert := m.cert.Load(); cert != nil {
		return cert, nil
	}
	return &tls.Certificate{}, nil
}

// PeerTags returns the node tags, in capitals, that the other side's verified
// certificate names; none if it showed no certificate or nobody verified it.
func PeerTags(state tls.ConnectionState) []string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	return Tags(state.VerifiedChains[0][0])
}

// Tags returns the node tags, in capitals, that a certificate names.
func Tags(cert *x509.Certificate) []string {
	var tags []string
	for _, name := range cert.DNSNames {
		if isTag(name) {
			tags = append(tags, strings.ToUpper(name))
		}
	}
	return tags
}

// NamesTag says whether a certificate names a node tag; case does not matter,
// as in all DNS names.
func NamesTag(cert *x509.Certificate, tag string) bool {
	for _, name := range Tags(cert) {
		if strings.EqualFold(name, tag) {
			return true
		}
	}
	return false
}

// isTag says whether a DNS name has the form of a node tag: one to four ASCII
// letters.
func isTag(name string) bool {
	if len(name) < 1 || len(name) > 4 {
		return false
	}
	for _, c := range []byte(name) {
		if c |= 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
