package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/idnode/idnode/cluster/witness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testCluster = []byte("0123456789abcdef")

// idOf is the Raft id of the node with the given one-letter tag.
func idOf(tag string) string { return strings.Repeat("0", 30) + "a" + strings.ToLower(tag) }

// book is a Directory that tests change.
type book struct {
	mu    sync.Mutex
	peers map[string]Peer
}

func newBook() *book { return &book{peers: map[string]Peer{}} }

func (b *book) Lookup(id string) (Peer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.peers[id]
	return p, ok
}

func (b *book) put(p Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peers[p.ID] = p
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func noSnapshot() (index, term uint64) { return 0, 0 }

// configOf is the configuration of the node with the given tag.
func configOf(b *book, tag string, l net.Listener) Config {
	return Config{
		Listener: l, ClusterID: testCluster, LocalID: idOf(tag), Directory: b, Witness: newDisk(trusted), DialContext: DialTCP,
		Configured: func() uint64 { return math.MaxUint64 }, Boundary: noSnapshot, VoteAnswered: func(time.Duration) {},
		LeaderHeard: func(raft.ServerID, uint64, time.Duration) {}, AnswerHeard: func(raft.ServerID, time.Duration) {},
		OnRefused: func(Peer, Status) {},
		Voters:    func() []raft.ServerID { return []raft.ServerID{raft.ServerID(idOf(tag))} }, Logger: discard,
	}
}

// start starts the transport of the node with the given tag on a port of its
// own, and enters it in the book.
func start(t testing.TB, b *book, tag string, change func(*Config)) *Transport {
	t.Helper()
	cfg := configOf(b, tag, listen(t))
	if change != nil {
		change(&cfg)
	}
	b.put(Peer{ID: cfg.LocalID, Tag: tag, Address: cfg.Listener.Addr().String()})
	tr := New(cfg)
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// authority signs certificates for tests.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(template, nil, nil)
	return a
}

func (a *authority) sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// certificate returns a certificate for both directions that names the tag.
func (a *authority) certificate(tag string) tls.Certificate {
	cert, key := a.sign(&x509.Certificate{
		DNSNames: []string{tag}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// secured makes a Config use TLS with a certificate that names the given tag.
func (a *authority) secured(tag string) func(*Config) {
	cert := a.certificate(tag)
	return func(c *Config) {
		c.TLS = &TLS{
			Server: func() (*tls.Config, error) {
				return &tls.Config{
					Certificates: []tls.Certificate{cert}, ClientCAs: a.pool(),
					ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
				}, nil
			},
			Client: func(string) (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: a.pool(), MinVersion: tls.VersionTLS12}, nil
			},
			NamesTag: func(state tls.ConnectionState, tag string) bool { return state.PeerCertificates[0].DNSNames[0] == tag },
		}
	}
}

// bareInbound is an inbound without a transport, of a node that takes part in elections.
func bareInbound(from <-chan raft.RPC) *inbound {
	cfg := Config{Witness: newDisk(witness.DiskState{}), Boundary: noSnapshot, LeaderHeard: func(raft.ServerID, uint64, time.Duration) {}}
	i := newInbound(&stream{cfg: cfg, conns: newConns()}, from)
	i.gate.opened.Store(true)
	return i
}
