// Package config is the one validated configuration of `idnode serve`.
//
// Every setting has one name, which is its flag, its key in a YAML file, and,
// in capitals with underscores and IDNODE_ before it, its variable in the
// environment. A flag wins over the environment, that over the file, and that
// over the default. What nobody knows is an error that names it: a setting with
// a slip in its name would otherwise silently be the default.
//
// The package owns the names, the defaults and the rules of single settings and
// between them. It opens no file but the configuration's, and acts on nothing.
package config

import "time"

// Config is the configuration of one node. Durations are bounded below and
// against each other by Validate.
type Config struct {
	// Tag is the node tag, A to ZZZZ. It may be empty only for a node that
	// joins: the cluster then gives it one.
	Tag string
	// DataDir is the folder that belongs to this node for ever.
	DataDir string

	// GRPC and Raft are the addresses to listen on, as host:port. HTTP is kept
	// for a later listener: it is announced to the members, and may be empty.
	GRPC, Raft, HTTP string
	// AdvertiseGRPC, AdvertiseRaft and AdvertiseHTTP are where others reach the
	// node. Load fills in those that are not given; see fillAdvertised.
	AdvertiseGRPC, AdvertiseRaft, AdvertiseHTTP string

	// Peer holds the gRPC addresses of all first nodes by tag, this one's
	// included.
	Peer map[string]string
	// Join holds gRPC addresses of members of a cluster to join.
	Join []string
	// Standby makes a node without a cluster wait until one takes it in.
	Standby bool
	// Watcher makes a node that joins a member that never votes.
	Watcher bool
	// ServerPrefix, if not empty, goes into the prefix of this node's ranges
	// instead of its tag.
	ServerPrefix string
	// Dial and DialPeer override, by tag, where this node reaches others on
	// their Raft port and on their gRPC port.
	Dial, DialPeer map[string]string

	// TLSCert, TLSKey and TLSCA are PEM files.
	TLSCert, TLSKey, TLSCA string
	// Insecure allows listening without TLS on more than loopback.
	Insecure bool

	// HeartbeatTimeout is how long a follower waits for its leader,
	// ElectionTimeout how long a candidate waits for votes, LeaderLeaseTimeout
	// how long a leader goes on without its quorum. Lease ≤ heartbeat ≤
	// election: a leader must have given up before the others elect another.
	HeartbeatTimeout, ElectionTimeout, LeaderLeaseTimeout time.Duration
	// CommitTimeout is how long followers may not know of the newest commit
	// when nothing follows it.
	CommitTimeout time.Duration
	// SnapshotInterval is how often a snapshot is considered,
	// SnapshotThreshold after how many log entries one is taken.
	SnapshotInterval  time.Duration
	SnapshotThreshold uint64
	// TrailingLogs is how many log entries a snapshot leaves for slow followers.
	TrailingLogs uint64

	// LeaderWait is how long a call waits for a leader.
	LeaderWait time.Duration
	// CallTimeout bounds every call, whatever its own deadline. It is above
	// LeaderWait, so that a call without a leader still hears why.
	CallTimeout time.Duration

	// MaxMessageBytes bounds one gRPC message that is received.
	MaxMessageBytes int
	// MaxConcurrentStreams bounds the calls in flight on one connection.
	MaxConcurrentStreams int
	// MaxHeaderBytes bounds the headers of one call.
	MaxHeaderBytes int
	// HandshakeTimeout bounds the opening of a connection.
	HandshakeTimeout time.Duration
	// MaxInFlight bounds the calls in flight on the node.
	MaxInFlight int

	// EtagBlockSize is how many etags one durable write reserves.
	EtagBlockSize uint64
	// StorageWatchdog is how long one write to the log may take before the
	// process ends. It is above ElectionTimeout, so that slow is not yet dead.
	StorageWatchdog time.Duration
	// StorageLowMark is how many bytes must be free on the disk for operations
	// to be proposed.
	StorageLowMark int64
	// StartWait is how long a start waits for the cluster before server-side
	// ids go on from this node's own disk.
	StartWait time.Duration

	// LogLevel is debug, info, warn or error; LogFormat text or json.
	LogLevel, LogFormat string
}

// Default returns the configuration where nothing is given. The parts that are
// configured have the same numbers for themselves; a test holds them together.
func Default() Config {
	return Config{
		GRPC: "127.0.0.1:7400",
		Raft: "127.0.0.1:7401",
		HTTP: "127.0.0.1:7402",

		HeartbeatTimeout:   250 * time.Millisecond,
		ElectionTimeout:    250 * time.Millisecond,
		LeaderLeaseTimeout: 200 * time.Millisecond,
		CommitTimeout:      20 * time.Millisecond,
		SnapshotInterval:   time.Minute,
		SnapshotThreshold:  16_384,
		TrailingLogs:       8_192,

		LeaderWait:  2 * time.Second,
		CallTimeout: 10 * time.Second,

		MaxMessageBytes:      4 << 20,
		MaxConcurrentStreams: 4_096,
		MaxHeaderBytes:       16 << 10,
		HandshakeTimeout:     5 * time.Second,
		MaxInFlight:          10_000,

		EtagBlockSize:   65_536,
		StorageWatchdog: 3 * time.Second,
		StorageLowMark:  64 << 20,
		StartWait:       5 * time.Second,

		LogLevel:  "info",
		LogFormat: "text",
	}
}

// TLS says whether the node has a certificate.
func (c *Config) TLS() bool { return c.TLSCert != "" }
