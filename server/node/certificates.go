package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/tlsconf"
)

// certificates are the node's own certificate and CA, and the check that a certificate is a
// node's. A nil *certificates means a node without TLS.
type certificates struct {
	*tlsconf.Material
	cfg *config.Config
	log *slog.Logger
	// clusterID returns "" before the cluster is known, for example when the own certificate
	// is first read.
	clusterID func() string
}

// ErrCertificate is a setting: the files are another node's.
var ErrCertificate = errors.New("the certificate is not this node's")

// loadCertificates returns nil for a node without TLS.
func loadCertificates(cfg *config.Config, log *slog.Logger, clusterID func() string) (*certificates, error) {
	if !cfg.TLS() {
		return nil, nil
	}
	m, err := tlsconf.LoadServer(tlsconf.Files{Cert: cfg.TLSCert, Key: cfg.TLSKey, CA: cfg.TLSCA})
	if err != nil {
		return nil, err
	}
	if !m.HasCA() {
		return nil, tlsconf.ErrNoCA
	}
	m.WarnOfEnded(log)
	c := &certificates{Material: m, cfg: cfg, log: log, clusterID: clusterID}
	return c, c.check(m.Leaf())
}

// check refuses a certificate that other nodes would not accept as this node's.
func (c *certificates) check(leaf *x509.Certificate) error {
	tag := c.cfg.Tag
	if err := leaf.VerifyHostname(tag); tag != "" && err != nil {
		return fmt.Errorf("%w: %s does not name node %s, and other nodes would refuse it: %w", ErrCertificate, c.cfg.TLSCert, tag, err)
	}
	if err := c.nodes().Check(leaf, tag); err != nil {
		return fmt.Errorf("%w: %s is not that of node %s, and other nodes would refuse it: %w; 'idnode certs' makes one",
			ErrCertificate, c.cfg.TLSCert, tag, err)
	}
	return nil
}

func (c *certificates) nodes() tlsconf.Nodes {
	return tlsconf.Nodes{Cluster: c.clusterID}
}

// certificatesEvery is the interval at which the certificate files are checked. They are
// small, and an operator that replaces them under load should not wait.
const certificatesEvery = time.Second

func (c *certificates) follow(ctx context.Context, m *metrics.Metrics) {
	if c == nil {
		return
	}
	m.Certificates(c.ValidUntil, c.EndedCAs)
	c.Watch(ctx, tlsconf.WatchConfig{
		Every: certificatesEvery, Check: c.check, OnReload: m.CertificatesRead, Logger: c.log,
	})
}

// ends returns nil for a node without TLS.
func (c *certificates) ends() func() time.Time {
	if c == nil {
		return nil
	}
	return func() time.Time {
		own, _ := c.ValidUntil()
		return own
	}
}

// namesMember is a peer.Authorize.
func (c *certificates) namesMember(ctx context.Context, tag string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return errors.New("the connection is not known")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return errors.New("the connection has no TLS")
	}
	if info.State.Version < tls.VersionTLS13 {
		return errors.New("the connection has an older version than TLS 1.3")
	}
	return c.nodes().Peer(info.State, tag)
}

// peerCredentials returns the credentials for dialling the gRPC port of another node, whose
// certificate must name its tag. With an empty tag, to join through an address, it must be a
// node's and name the host.
func (c *certificates) peerCredentials() func(tag string) credentials.TransportCredentials {
	if c == nil {
		return nil
	}
	return func(tag string) credentials.TransportCredentials {
		return newestCredentials{credentials.NewTLS(c.peerConfig(tag)), func() *tls.Config { return c.peerConfig(tag) }}
	}
}

func (c *certificates) peerConfig(tag string) *tls.Config {
	cfg := c.Client(tag)
	cfg.MinVersion = tls.VersionTLS13
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return c.nodes().Peer(state, tag) }
	return cfg
}

// newestCredentials are credentials of a client that read the configuration again at each
// handshake: a connection is made many times in its life, each time with the newest
// certificates.
type newestCredentials struct {
	// TransportCredentials are those of the configuration as it was first.
	credentials.TransportCredentials
	config func() *tls.Config
}

func (c newestCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, conn)
}

func (c newestCredentials) Clone() credentials.TransportCredentials { return c }

func (c *certificates) raftTLS() *cluster.TLS {
	if c == nil {
		return nil
	}
	return &cluster.TLS{
		Server: c.PeerServer, Client: c.PeerClient,
		NamesTag: func(state tls.ConnectionState, tag string) bool { return c.nodes().Peer(state, tag) == nil },
	}
}
