// Package tlsconf owns TLS: it turns a certificate, a key and a CA from files into the *tls.Config
// of each listener and each dialler, finds the nodes that a certificate names, and makes
// certificates for a new cluster. Between nodes a URI and the node tag are checked, not the host
// name: a node keeps its identity on any host. See Nodes.
//
// Certificates sit behind callbacks, and Watch reads the files again when they change, so that
// renewing them needs no restart. The package neither listens nor dials.
package tlsconf

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/access/rights"
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
	Key  string
	// CA holds the certificates of the authorities that sign for the other side.
	CA string
}

// Material is the newest valid content of Files. It is safe for concurrent use.
type Material struct {
	files Files
	now   atomic.Pointer[loaded]
}

// text is the content of Files; empty for a file that is not given.
type text struct{ cert, key, ca string }

type loaded struct {
	text text
	// cert is nil for a client that only checks the server.
	cert *tls.Certificate
	// ca is nil without a CA, and has its roots.
	ca    *x509.CertPool
	roots []*x509.Certificate
}

// LoadServer reads the files of a node: certificate and key are needed, the CA
// is not. Errors name the file at fault.
func LoadServer(f Files) (*Material, error) {
	if f.Cert == "" {
		return nil, fmt.Errorf("%w: no certificate is given", ErrHalfGiven)
	}
	return LoadClient(f)
}

// LoadClient reads the files of an application or a command: each of a pair of
// certificate and key, and a CA, may be missing. Without a CA the system's
// roots decide about the server. Errors name the file at fault.
func LoadClient(f Files) (*Material, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("%w: certificate %q, key %q", ErrHalfGiven, f.Cert, f.Key)
	}
	l, err := f.load()
	if err != nil {
		return nil, err
	}
	m := &Material{files: f}
	m.now.Store(l)
	return m, nil
}

func (f Files) load() (*loaded, error) {
	t, err := f.read()
	if err != nil {
		return nil, err
	}
	return f.parse(t)
}

// read reads the files. With an error the text has those that could be read.
func (f Files) read() (t text, err error) {
	read := func(what, file string) string {
		if file == "" {
			return ""
		}
		data, failed := os.ReadFile(file)
		if failed == nil {
			failed = checkText(file, string(data))
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("tlsconf: %s: %w", what, failed)
		}
		return string(data)
	}
	t = text{cert: read("certificate", f.Cert), key: read("key", f.Key), ca: read("CA", f.CA)}
	return t, err
}

// checkText refuses files that crypto/tls ignores, or refuses without the cause.
func checkText(file, text string) error {
	switch {
	case strings.HasPrefix(text, "\ufeff"):
		return fmt.Errorf("%s begins with a byte-order mark: save it without", file)
	case strings.Contains(text, "-----BEGIN ENCRYPTED"), strings.Contains(text, "Proc-Type: 4,ENCRYPTED"): // RFC 7468, RFC 1421
		return fmt.Errorf("%s has a key with a password, which cannot be asked for: decrypt it (openssl pkey -in %s)", file, file)
	}
	return nil
}

func (f Files) parse(t text) (*loaded, error) {
	l := &loaded{text: t}
	if f.Cert != "" {
		cert, err := tls.X509KeyPair([]byte(t.cert), []byte(t.key))
		if err != nil {
			return nil, fmt.Errorf("tlsconf: certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		l.cert = &cert
	}
	if f.CA != "" {
		if err := l.parsePool(f.CA); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// parsePool takes a CA's certificates. Blocks of other kinds are passed over; a certificate that
// cannot be read is an error, since those it has signed would be refused.
func (l *loaded) parsePool(file string) error {
	l.ca = x509.NewCertPool()
	for block, rest := pem.Decode([]byte(l.text.ca)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("tlsconf: CA %s: %w", file, err)
		}
		l.ca.AddCert(cert)
		l.roots = append(l.roots, cert)
	}
	if l.roots == nil {
		return fmt.Errorf("tlsconf: CA %s holds no certificate in PEM form", file)
	}
	return nil
}

// Accepts reports whether the certificate of a connection, verified at the handshake, is still
// valid: it and its issuers have not expired, and their CA is still in use. It verifies no
// signature, and so can be called often.
func (m *Material) Accepts(state tls.ConnectionState) bool {
	now, roots := time.Now(), m.now.Load().roots
	if roots == nil {
		return true // No certificate was asked for.
	}
	return slices.ContainsFunc(state.VerifiedChains, func(chain []*x509.Certificate) bool {
		ended := slices.ContainsFunc(chain, func(cert *x509.Certificate) bool { return usable(cert, now) != nil })
		return !ended && slices.ContainsFunc(roots, chain[len(chain)-1].Equal)
	})
}

// CAs names those that sign the other side's certificates, as SignedBy does.
func (m *Material) CAs() (names []string) {
	for _, root := range m.now.Load().roots {
		names = append(names, nameOfCA(root))
	}
	return names
}

// SignedBy names the CA that issued a verified connection's certificate; empty for none. Two CAs of
// one subject, which is usual for an old and a new CA, differ in the first digits of their SHA-256
// fingerprints.
func SignedBy(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 {
		return ""
	}
	chain := state.VerifiedChains[0]
	return nameOfCA(chain[len(chain)-1])
}

// MaxCANameBytes bounds the name of a CA, and MaxCAs the CAs shown of a node.
const MaxCANameBytes, MaxCAs = 128, 8

func nameOfCA(ca *x509.Certificate) string {
	sum, subject := sha256.Sum256(ca.Raw), ca.Subject.String()
	return fmt.Sprintf("%s %x", strings.ToValidUTF8(subject[:min(len(subject), MaxCANameBytes-17)], ""), sum[:8])
}

// HasCA reports whether a CA was given.
func (m *Material) HasCA() bool { return m.now.Load().ca != nil }

// Leaf returns the node's or client's own certificate, or nil.
func (m *Material) Leaf() *x509.Certificate {
	if cert := m.now.Load().cert; cert != nil {
		return cert.Leaf
	}
	return nil
}

// suites are the cipher suites of TLS 1.2 with authenticated encryption and ephemeral keys. Every
// client has one of them since Java 8, OpenSSL 1.0.1 and Windows Server 2016; all suites of TLS 1.3
// have both properties.
func suites() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// Server returns the configuration of a listener that applications use, with TLS 1.2 or later.
// With a CA every client must show a certificate signed by it. Certificate and CA are those of
// the moment of each handshake; protocols are those to be agreed on in it.
func (m *Material) Server(protocols ...string) *tls.Config {
	cfg := m.server(tls.VersionTLS12, protocols)
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return m.server(tls.VersionTLS12, protocols), nil
	}
	return cfg
}

// server returns the current configuration of a listener. Sessions are never resumed: a resumed
// session would skip the check of the certificate, even if the CA was replaced meanwhile.
func (m *Material) server(version uint16, protocols []string) *tls.Config {
	cfg := &tls.Config{
		MinVersion: version, CipherSuites: suites(), NextProtos: protocols, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.now.Load().cert, nil },
	}
	if ca := m.now.Load().ca; ca != nil {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs = ca
	}
	return cfg
}

// Client returns the configuration of an application, with TLS 1.2 or later.
// The server's certificate must name the host dialled, or serverName if that is
// not empty. The CA is the current one: a caller that dials for long asks again each time.
func (m *Material) Client(serverName string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, CipherSuites: suites(), RootCAs: m.now.Load().ca, ServerName: serverName,
		GetClientCertificate: m.getClientCertificate,
	}
}

// PeerServer returns the configuration of the Raft listener, with TLS 1.3. The dialler must show
// a certificate signed by the CA; the caller checks its identity with Nodes. It returns ErrNoCA.
func (m *Material) PeerServer() (*tls.Config, error) {
	if !m.HasCA() {
		return nil, ErrNoCA
	}
	return m.server(tls.VersionTLS13, nil), nil
}

// PeerClient returns the configuration for dialling the node with a tag, on its
// Raft or its gRPC port, with TLS 1.3. The certificate there must be signed by
// the CA and name the tag; host names do not matter. That it is a node's, is for the
// caller to find out with Nodes. It returns ErrNoCA.
func (m *Material) PeerClient(tag string) (*tls.Config, error) {
	if !m.HasCA() {
		return nil, ErrNoCA
	}
	if !isTag(tag) {
		// An empty server name would be filled in by gRPC with the address.
		return nil, fmt.Errorf("tlsconf: %q is no node tag", tag)
	}
	// A tag is a valid host name of one label, so the usual check of the server name is the check
	// of the tag, also when a session is resumed.
	cfg := m.Client(tag)
	cfg.MinVersion = tls.VersionTLS13
	return cfg, nil
}

// getClientCertificate answers a server that asks for a certificate. The empty certificate means
// that there is none; the server decides whether to accept that.
func (m *Material) getClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if cert := m.now.Load().cert; cert != nil {
		return cert, nil
	}
	return &tls.Certificate{}, nil
}

// Principal returns the name of the other side, with its kind, from its verified certificate: the
// first URI, else the first DNS name, else the first mail address among its alternative names. A
// URI is compared byte for byte: URIs that are equal by RFC 3986 are different principals. It is
// empty without any, or without a verified certificate. The common name does not count, and neither
// does the URI of a node, which is called by its tag.
func Principal(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	cert := state.VerifiedChains[0][0]
	name := ""
	callers := slices.IndexFunc(cert.URIs, func(uri *url.URL) bool { return uri.Scheme != nodeScheme })
	switch {
	case callers >= 0:
		uris := rawURIs(cert)
		if len(uris) != len(cert.URIs) {
			return ""
		}
		name = rights.URI + uris[callers]
	case len(cert.DNSNames) > 0:
		name = rights.DNS + cert.DNSNames[0]
	case len(cert.EmailAddresses) > 0:
		name = rights.Email + cert.EmailAddresses[0]
	}
	if !utf8.ValidString(name) {
		return ""
	}
	return name
}

// rawURIs returns the URIs among the alternative names of a certificate, in their order. A
// url.URL keeps neither the case of a scheme nor an empty fragment.
func rawURIs(cert *x509.Certificate) (uris []string) {
	subjectAltName := asn1.ObjectIdentifier{2, 5, 29, 17}
	const uniformResourceIdentifier = 6 // RFC 5280, 4.2.1.6
	for _, extension := range cert.Extensions {
		var names []asn1.RawValue
		if !extension.Id.Equal(subjectAltName) {
			continue
		}
		if _, err := asn1.Unmarshal(extension.Value, &names); err != nil {
			return nil
		}
		for _, name := range names {
			if name.Class == asn1.ClassContextSpecific && name.Tag == uniformResourceIdentifier {
				uris = append(uris, string(name.Bytes))
			}
		}
	}
	return uris
}

// isTag reports whether a DNS name has the form of a node tag: one to four ASCII letters.
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
