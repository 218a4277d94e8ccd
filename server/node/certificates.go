package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/server/tlsconf"
)

// certificates returns nil for a node without TLS.
func (n *Node) certificates() (*tlsconf.Material, error) {
	if !n.cfg.TLS() {
		return nil, nil
	}
	m, err := tlsconf.LoadServer(tlsconf.Files{Cert: n.cfg.TLSCert, Key: n.cfg.TLSKey, CA: n.cfg.TLSCA})
	if err != nil {
		return nil, err
	}
	if !m.HasCA() {
		return nil, tlsconf.ErrNoCA
	}
	return m, n.checkCertificate(m.Leaf())
}

// checkCertificate refuses a certificate with which other nodes would not take
// this one for itself.
func (n *Node) checkCertificate(leaf *x509.Certificate) error {
	tag := n.cfg.Tag
	if err := leaf.VerifyHostname(tag); tag != "" && err != nil {
		return fmt.Errorf("the certificate %s does not name node %s: other nodes would refuse it: %w", n.cfg.TLSCert, tag, err)
	}
	if err := n.nodes().Check(leaf, tag); err != nil {
		return fmt.Errorf("the certificate %s is not that of node %s, and other nodes would refuse it: %w; 'idnode certs' makes one, and docs/operations.md says how to change over from older ones", n.cfg.TLSCert, tag, err)
	}
	return nil
}

// nodes tells the certificates of nodes from others.
func (n *Node) nodes() tlsconf.Nodes {
	nodes := tlsconf.Nodes{Cluster: n.clusterID}
	if n.cfg.AcceptOldNodeCertificates {
		nodes.Plain = n.oldCertificate
	}
	return nodes
}

// clusterID is empty before the cluster is known: when the own certificate is first
// read, for one.
func (n *Node) clusterID() string {
	if n.cluster == nil {
		return ""
	}
	return hex.EncodeToString(n.cluster.ClusterID())
}

// oldCertificate warns of a certificate that is accepted for the time of an upgrade
// only, once for each tag.
func (n *Node) oldCertificate(tag string) {
	if _, told := n.oldCertificates.LoadOrStore(tag, true); !told {
		n.log.Warn("a node's certificate does not say that it is one, and is accepted because of accept-old-node-certificates: replace it, and take that setting away", "tag", tag)
	}
}

// certificatesEvery is the time between two looks at the certificate files. They are
// small, and an operator that replaces them under load should not wait.
const certificatesEvery = time.Second

// keepConnections ends the gRPC connections of callers that read none of their pending
// answers, whose certificate has ended, or whose CA is gone.
func (n *Node) keepConnections(ctx context.Context) {
	tick := time.NewTicker(certificatesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			n.connections.EndStalled(now)
			n.connections.Keep(func(info credentials.AuthInfo) bool {
				known, ok := info.(credentials.TLSInfo)
				return !ok || n.certs.Accepts(known.State)
			})
		}
	}
}

// followCertificates takes new certificates over while the node runs.
func (n *Node) followCertificates(ctx context.Context) {
	if n.certs == nil {
		return
	}
	n.metrics.Certificates(n.certs.ValidUntil)
	n.certs.Watch(ctx, tlsconf.WatchConfig{
		Every: certificatesEvery, Check: n.checkCertificate, OnReload: n.metrics.CertificatesRead, Logger: n.log,
	})
}

// certificateEnds returns nil for a node without TLS.
func certificateEnds(certificates *tlsconf.Material) func() time.Time {
	if certificates == nil {
		return nil
	}
	return func() time.Time {
		own, _ := certificates.ValidUntil()
		return own
	}
}

// namesMember says whether the certificate of a call's connection names the
// member with this tag.
func (n *Node) namesMember(ctx context.Context, tag string) error {
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
	return n.nodes().Peer(info.State, tag)
}

// peerCredentials are for dialling the gRPC port of another node, whose
// certificate must be that of its tag. Of a node that is known only by its address,
// to join through, it must be a node's and name the host.
func (n *Node) peerCredentials(certificates *tlsconf.Material) func(tag string) credentials.TransportCredentials {
	if certificates == nil {
		return nil
	}
	return func(tag string) credentials.TransportCredentials {
		return newestCredentials{config: func() *tls.Config { return n.peerConfig(certificates, tag) }}
	}
}

func (n *Node) peerConfig(certificates *tlsconf.Material, tag string) *tls.Config {
	cfg := certificates.Client("")
	cfg.MinVersion = tls.VersionTLS13
	if tag != "" {
		// Only a tag that is none, or a missing CA, fails: neither gets here.
		if named, err := certificates.PeerClient(tag); err == nil {
			cfg = named
		}
	}
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return n.nodes().Peer(state, tag) }
	return cfg
}

// newestCredentials are those of a client that reads its configuration again at each
// handshake: a connection is made many times in its life, each time with the newest
// certificates.
type newestCredentials struct {
	config func() *tls.Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (c newestCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials; it is for clients.
func (c newestCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (c newestCredentials) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(c.config()).Info()
}

// Clone implements credentials.TransportCredentials.
func (c newestCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials, which has it for
// callers that still use it.
func (newestCredentials) OverrideServerName(string) error {
	return errors.New("the name is the configuration's")
}

// raftTLS are for both directions of the Raft port.
func (n *Node) raftTLS(certificates *tlsconf.Material) *cluster.TLS {
	if certificates == nil {
		return nil
	}
	return &cluster.TLS{
		Server: certificates.PeerServer, Client: certificates.PeerClient,
		NamesTag: func(state tls.ConnectionState, tag string) bool { return n.nodes().Peer(state, tag) == nil },
	}
}
