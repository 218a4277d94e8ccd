package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

const (
	// DefaultTimeout bounds sending one message and waiting for its answer. Replication to
	// a node that vanished silently hangs for this time.
	DefaultTimeout = 2 * time.Second
	// DefaultInstallTimeout bounds the time without progress of a snapshot; after it the sender
	// gives up. A follower may be busy that long before it reads the snapshot.
	DefaultInstallTimeout = 30 * time.Second
	// DefaultDialTimeout bounds the name lookup, the connect and both handshakes. It is below
	// DefaultTimeout, since a dial precedes a message, and well above probeTimeout, which the
	// other side may use.
	DefaultDialTimeout = 1500 * time.Millisecond
	// DefaultAcceptTimeout bounds both handshakes on the accepting side.
	DefaultAcceptTimeout = 1500 * time.Millisecond
	// DefaultMaxPending bounds the accepted connections in a handshake, and the silent ones.
	DefaultMaxPending = 64
	// DefaultMaxPool bounds the idle connections kept to one node.
	DefaultMaxPool = 3
	// probeTimeout bounds a probe, which checks that a dialler is the member it claims to be.
	probeTimeout = 250 * time.Millisecond
	// leastBackoff and maxBackoff bound the pause between two dials of a member that does not vote,
	// and has never answered this process; it is as long as the dials have failed already. A node
	// that comes up greets all members, which ends it.
	leastBackoff, maxBackoff = time.Second, 30 * time.Second
	// refusalLogEvery is the interval at which an unchanged refusal is logged.
	refusalLogEvery = 10 * time.Second
)

// Peer is a present or former member, as listed by the Directory.
type Peer struct {
	// ID is the Raft id, 32 hexadecimal digits.
	ID string
	// Tag is the node tag, which its certificate must name.
	Tag string
	// Address is its Raft port as host:port; the host may be a name.
	Address string
	// Removed means that the id was a member and never will be again.
	Removed bool
	// Voter is false for a member that does not vote, or not yet: the process at its address may
	// never have been a node.
	Voter bool
}

// Directory is the table of members. It is read at each dial and each accept, so it must be
// quick, and safe for concurrent use.
type Directory interface {
	Lookup(id string) (Peer, bool)
}

// Witness has the state of this node's disk, and the seen states of other members' disks.
// Its methods must be quick, and safe for concurrent use.
type Witness interface {
	Own() witness.DiskState
	// The others are those of witness.Witness.
	Seen(id string) witness.Seen
	Accept(id string, process uint64, p witness.DiskState, asked witness.Seen) error
	Acknowledged(id string, term, match, committed uint64)
}

// TLS makes connections mutual TLS. Its functions are called for each connection, so that
// renewed certificates need no restart. Both configurations must have the node's certificate
// and the authorities of the members' certificates.
type TLS struct {
	// Server must demand and verify client certificates.
	Server func() (*tls.Config, error)
	// Client gets the tag of the node dialled, which is also the ServerName, unless the
	// configuration has one.
	Client func(tag string) (*tls.Config, error)
	// NamesTag reports whether a verified certificate names a tag.
	NamesTag func(state tls.ConnectionState, tag string) bool
}

// Config configures New. Its functions are called on any goroutine; all of them are required.
type Config struct {
	// Process is the number of this process; 0 means a random one.
	Process uint64
	// Listener is the Raft port. The transport closes it, even if New fails.
	Listener net.Listener
	// ClusterID is the cluster's 16-byte id, LocalID this node's Raft id, 32
	// hexadecimal digits.
	ClusterID []byte
	LocalID   string
	Directory Directory
	Witness   Witness
	// Voters returns the voters, for which this process's votes wait: see gate.
	Voters func() []raft.ServerID
	// Configured returns the index of the newest configuration in the log. A member that is
	// not in that configuration is not sent it.
	Configured func() uint64
	// Boundary returns index and term of the last entry of this node's newest snapshot; 0 without one.
	Boundary func() (index, term uint64)
	// VoteAnswered is called for each answered request for a vote, with the time to the answer.
	VoteAnswered func(took time.Duration)
	// LeaderHeard is called for each request of a leader, with the time since the previous request
	// of the same term. AnswerHeard is called for each answer to a request of this node as a
	// leader, with the time since the previous answer, of any member, in the same term. Both must
	// be quick.
	LeaderHeard func(from raft.ServerID, term uint64, gap time.Duration)
	AnswerHeard func(from raft.ServerID, gap time.Duration)
	// Dial overrides the Address of nodes, by tag.
	Dial map[string]string

	// TLS is nil for plain connections.
	TLS *TLS

	// OnRefused is called whenever a dialled node refused this node: with Removed the process
	// should end. It is called on the dialling goroutine and must be quick.
	OnRefused func(by Peer, status Status)
	// DialContext opens connections.
	DialContext func(ctx context.Context, address string) (net.Conn, error)

	// Zero values of the following fields mean the defaults above.
	Timeout        time.Duration
	InstallTimeout time.Duration
	AcceptTimeout  time.Duration
	MaxPending     int

	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.InstallTimeout = cmp.Or(c.InstallTimeout, DefaultInstallTimeout)
	c.AcceptTimeout = cmp.Or(c.AcceptTimeout, DefaultAcceptTimeout)
	c.MaxPending = cmp.Or(c.MaxPending, DefaultMaxPending)
	c.Process = cmp.Or(c.Process, newProcess())
	return c
}
