package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TLSFiles are names of PEM files, so that certificates can be renewed while a client lives: a new
// connection uses what the files have then, looked at once a second at most. Files that cannot be read, or do
// not fit together, keep what was read before, and Config.Logger gets a line at warn. Connections that are
// open go on, and end by their own.
type TLSFiles struct {
	// CA has the authorities that sign the nodes' certificates; empty means those of Config.TLS, or
	// the system's.
	CA string
	// Cert and Key have the client's certificate, with its chain, and its key: both or neither.
	Cert, Key string
}

// readAgain is the least time between two looks at the files of a TLSFiles.
const readAgain = time.Second

// secured makes the connections with TLS of a client. It is safe for concurrent use.
type secured struct {
	base   *tls.Config
	files  TLSFiles
	logger *slog.Logger

	mu     sync.Mutex
	readAt time.Time
	// texts are what the files had when current was made.
	texts   [3]string
	current *tls.Config
	// told is the newest error of the files that the log has.
	told string
}

// newSecured returns nil if cfg is without TLS. An error is one of the files.
func newSecured(cfg Config) (*secured, error) {
	if cfg.TLS == nil && cfg.TLSFiles == (TLSFiles{}) {
		return nil, nil
	}
	s := &secured{base: cfg.TLS, files: cfg.TLSFiles, logger: cfg.Logger}
	if s.base == nil {
		s.base = &tls.Config{}
	}
	return s, s.read()
}

// config returns what a new connection uses.
func (s *secured) config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == (TLSFiles{}) || time.Since(s.readAt) < readAgain {
		return s.current
	}
	told := ""
	if err := s.read(); err != nil {
		told = err.Error()
	}
	if told != "" && told != s.told {
		s.logger.Warn("idnode: the TLS files cannot be used; those read before stay in use", "error", told)
	}
	s.told = told
	return s.current
}

// read reads the files, and replaces current if they have changed. The caller has s.mu, or s alone.
func (s *secured) read() error {
	s.readAt = time.Now()
	var texts [3]string
	for i, name := range []string{s.files.CA, s.files.Cert, s.files.Key} {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	if s.current != nil && texts == s.texts {
		return nil
	}
	cfg := s.base.Clone()
	if s.files.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(texts[0])) {
			return fmt.Errorf("%s has no certificate (PEM)", s.files.CA)
		}
	}
	if s.files.Cert != "" || s.files.Key != "" {
		own, err := tls.X509KeyPair([]byte(texts[1]), []byte(texts[2]))
		if err != nil {
			return fmt.Errorf("%s and %s: %w", s.files.Cert, s.files.Key, err)
		}
		cfg.Certificates, cfg.GetClientCertificate = []tls.Certificate{own}, nil
	}
	s.current, s.texts = cfg, texts
	return nil
}

// credentials returns gRPC's for an address.
func (s *secured) credentials(n *node) credentials.TransportCredentials {
	if s == nil {
		return insecure.NewCredentials()
	}
	return &handshakes{credentials.NewTLS(tlsFor(s.base, n.address)), s, n} // Each handshake makes its own.
}

// handshakes are gRPC's credentials of a node, each handshake with the newest files.
type handshakes struct {
	credentials.TransportCredentials
	secured *secured
	node    *node
}

// ClientHandshake implements credentials.TransportCredentials.
func (h *handshakes) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg := tlsFor(h.secured.config(), h.node.address)
	choose := cfg.GetClientCertificate
	cfg.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		own, err := chosen(cfg, choose, asked)
		if err == nil {
			h.node.shown.Store(own)
		}
		return own, err
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{h.TransportCredentials.Clone(), h.secured, h.node}
}

// chosen returns the certificate that a client shows: choose's, or the first that the node accepts, as
// crypto/tls does it. One without a chain shows none.
func chosen(
	cfg *tls.Config, choose func(*tls.CertificateRequestInfo) (*tls.Certificate, error), asked *tls.CertificateRequestInfo,
) (*tls.Certificate, error) {
	if choose != nil {
		return choose(asked)
	}
	for i := range cfg.Certificates {
		if asked.SupportsCertificate(&cfg.Certificates[i]) == nil {
			return &cfg.Certificates[i], nil
		}
	}
	return &tls.Certificate{}, nil
}

// ownCertificate says what may be wrong with the certificate that the client has shown to a node which
// ended the connection; "" if the node has asked for none. With TLS 1.3 a node judges it after the client's
// handshake, so its alert may be lost, and a write that fails be the only sign.
func (n *node) ownCertificate() string {
	shown := n.shown.Load()
	if shown == nil {
		return ""
	}
	if len(shown.Certificate) == 0 {
		return "the node asks for a certificate, and the client has none that one of its authorities has signed"
	}
	leaf, err := x509.ParseCertificate(shown.Certificate[0])
	if err != nil {
		return "the client's certificate cannot be read"
	}
	end := "ends"
	if time.Now().After(leaf.NotAfter) {
		end = "has ended"
	}
	return fmt.Sprintf("the node may not accept the client's certificate %s, which %s at %s",
		leaf.Subject, end, leaf.NotAfter.UTC().Format(time.RFC3339))
}

// unreachable returns the error of a connection that failed, with what may be wrong with the client's own
// certificate.
func (n *node) unreachable(cause error) *Error {
	e := unreachable(n.address, cause)
	if own := n.ownCertificate(); own != "" {
		e.Message += " (" + own + ")"
	}
	return e
}
