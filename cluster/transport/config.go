package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

const (
	// DefaultTimeout bounds sending one message and waiting for its answer. It is
	// how long replication to a node hangs that vanished without a word.
	DefaultTimeout = 2 * time.Second
	// DefaultInstallTimeout bounds sending a snapshot and waiting until it is
	// installed. It is multiplied by the snapshot's size in units of installScale,
	// up to maxInstallTimeout: a megabyte a second. Meanwhile heartbeats go on, and
	// keepAlive finds a node that is gone.
	DefaultInstallTimeout = 30 * time.Second
	installScale          = 32 << 20
	maxInstallTimeout     = time.Hour
	// DefaultDialTimeout bounds looking up a name, connecting, and both
	// handshakes. It is below DefaultTimeout, since a dial comes before a message,
	// and well above probeTimeout, which the other side may take.
	DefaultDialTimeout = 1500 * time.Millisecond
	// DefaultAcceptTimeout bounds both handshakes on the accepting side.
	DefaultAcceptTimeout = 1500 * time.Millisecond
	// DefaultMaxPending is how many accepted connections may be in a handshake.
	DefaultMaxPending = 64
	// DefaultMaxPool is how many idle connections to one node are kept.
	DefaultMaxPool = 3
	// probeTimeout bounds asking a member whether a caller is really it.
	probeTimeout = 250 * time.Millisecond
	// refusalLogEvery is how often the same refusal is logged.
	refusalLogEvery = 10 * time.Second
	// olderFor is how long a node that did not know the handshake's second version is
	// dialled with the first.
	olderFor = 10 * time.Second
)

// Peer is a member, or a former one, as the Directory knows it.
type Peer struct {
	// ID is the Raft id, 32 hexadecimal digits.
	ID string
	// Tag is the node tag, which its certificate must name.
	Tag string
	// Address is its Raft port as host:port; the host may be a name.
	Address string
	// Removed says that the id once was a member and never will be again.
	Removed bool
}

// Directory knows the members. It is asked at each dial and each accept, from
// many goroutines, so it must be quick and safe for concurrent use.
type Directory interface {
	Lookup(id string) (Peer, bool)
}

// Witness knows how far this node's disk is, and how far those of others were seen to
// be. Its methods are quick, and safe for concurrent use.
type Witness interface {
	// Own returns this node's progress.
	Own() witness.Progress
	// Accept returns nil if a process may be the member: its disk has everything that
	// the member was seen to have.
	Accept(id string, process uint64, p witness.Progress) error
	// Met learns of a process that did not say its progress.
	Met(id string, process uint64)
	// Acknowledged is told what a member's message proves of its disk.
	Acknowledged(id string, term, match, committed uint64)
}

// Config is what New needs.
type Config struct {
	// Listener is the Raft port. The transport closes it, also when New fails.
	Listener net.Listener
	// ClusterID is the cluster's 16-byte id, LocalID this node's Raft id, 32
	// hexadecimal digits.
	ClusterID []byte
	LocalID   string
	Directory Directory
	// Witness may be nil: then connections are opened as older programs do, and a
	// member whose disk was set back is not noticed.
	Witness Witness
	// Voters, if set, returns who votes, and makes this process wait with its votes:
	// it gives none before so many voters have accepted it that they and it are a
	// majority. So whoever saw that its disk had more has said so before.
	Voters func() []raft.ServerID
	// OlderPeers reports whether other members may run a program that knows only the
	// handshake's first version. Nil means yes.
	OlderPeers func() bool
	// Dial says, by tag, where to reach a node instead of its Address.
	Dial map[string]string

	// ServerTLS and ClientTLS are asked for each connection, so renewed
	// certificates need no restart. Both nil means no TLS. ServerTLS must demand
	// and verify client certificates; ClientTLS gets the tag of the node dialled,
	// and a configuration without ServerName gets the tag as one.
	ServerTLS func() (*tls.Config, error)
	ClientTLS func(tag string) (*tls.Config, error)
	// NamesTag reports whether the verified certificate of a connection names the tag.
	// Nil means: one of its DNS names is the tag.
	NamesTag func(state tls.ConnectionState, tag string) bool

	// OnRefused is called whenever a dialled node refused this one: with Removed
	// the process should end. It is called on the dialling goroutine and must be
	// quick. Nil means nothing.
	OnRefused func(by Peer, status Status)
	// WrapConn, if set, wraps each TCP connection, for tests with faults.
	WrapConn func(net.Conn) net.Conn
	// DialContext opens connections; nil means DialTCP.
	DialContext func(ctx context.Context, address string) (net.Conn, error)

	// Zero values of these mean the defaults above.
	Timeout        time.Duration
	InstallTimeout time.Duration
	DialTimeout    time.Duration
	AcceptTimeout  time.Duration
	MaxPending     int
	MaxPool        int

	// Logger is required.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.InstallTimeout = cmp.Or(c.InstallTimeout, DefaultInstallTimeout)
	c.DialTimeout = cmp.Or(c.DialTimeout, DefaultDialTimeout)
	c.AcceptTimeout = cmp.Or(c.AcceptTimeout, DefaultAcceptTimeout)
	c.MaxPending = cmp.Or(c.MaxPending, DefaultMaxPending)
	c.MaxPool = cmp.Or(c.MaxPool, DefaultMaxPool)
	if c.OnRefused == nil {
		c.OnRefused = func(Peer, Status) {}
	}
	if c.OlderPeers == nil {
		c.OlderPeers = func() bool { return true }
	}
	if c.WrapConn == nil {
		c.WrapConn = func(conn net.Conn) net.Conn { return conn }
	}
	if c.DialContext == nil {
		c.DialContext = DialTCP
	}
	if c.NamesTag == nil {
		c.NamesTag = namesTag
	}
	return c, c.validate()
}

func (c Config) validate() error {
	switch {
	case c.Listener == nil || c.Directory == nil || c.Logger == nil:
		return errors.New("transport: Listener, Directory and Logger are required")
	case len(c.ClusterID) != idBytes:
		return fmt.Errorf("transport: the cluster id has %d bytes, must have %d", len(c.ClusterID), idBytes)
	case (c.ServerTLS == nil) != (c.ClientTLS == nil):
		return errors.New("transport: TLS is for both directions or for none")
	case min(c.Timeout, c.InstallTimeout, c.DialTimeout, c.AcceptTimeout) < 0 || c.MaxPending < 1 || c.MaxPool < 1:
		return errors.New("transport: timeouts and limits must be positive")
	case min(c.DialTimeout, c.AcceptTimeout) <= probeTimeout:
		return fmt.Errorf("transport: the timeouts of dialling and accepting must be above %s", probeTimeout)
	}
	_, err := parseID(c.LocalID)
	return err
}

func namesTag(state tls.ConnectionState, tag string) bool {
	return len(state.PeerCertificates) > 0 && slices.Contains(state.PeerCertificates[0].DNSNames, tag)
}
