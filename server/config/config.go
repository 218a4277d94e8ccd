// Package config is the one validated configuration of `idnode serve`.
//
// Every setting has one name, which is its flag, its key in a YAML file, and,
// in capitals with underscores and IDNODE_ before it, its variable in the
// environment. A flag wins over the environment, that over the file, and that
// over the default. An unknown name is an error: a misspelt setting would
// otherwise silently be the default.
//
// The package owns the names, the defaults and the rules of single settings and
// between them. It opens no file but the configuration's, and acts on nothing.
package config

import (
	"io"
	"time"

	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/internal/failpoint"
)

// Config is the configuration of one node. Durations are bounded below and
// against each other by Validate.
type Config struct {
	// Tag is the node tag, A to ZZZZ. It may be empty only for a node that
	// joins: the cluster then gives it one.
	Tag string
	// DataDir is the folder that belongs to this node permanently.
	DataDir string

	// GRPC, Raft and HTTP are the addresses to listen on, as host:port. HTTP may
	// be empty: the node then has no such port.
	GRPC, Raft, HTTP string
	// Metrics is the address to listen on for metrics and health, as host:port.
	// Empty means that they are on HTTP.
	Metrics string
	// AdvertiseGRPC, AdvertiseRaft and AdvertiseHTTP are where others reach the
	// node. Load fills in those that are not given; see fillAdvertised.
	AdvertiseGRPC, AdvertiseRaft, AdvertiseHTTP string

	// HTTPHost holds further host names under which HTTP is called without TLS, such as
	// those of balancers.
	HTTPHost []string

	// Peer holds the gRPC addresses of all first nodes by tag, this one's
	// included.
	Peer map[string]string
	// Join holds gRPC addresses of members of a cluster to join. Of Peer and Join,
	// where both are given, Load keeps the one that is this node's way.
	Join []string
	// ClusterID is the id of the node's cluster, 32 hexadecimal digits; empty where it does not
	// exist yet. With it a node never begins a cluster.
	ClusterID string
	// JoinTokenFile is the file with the token to join by, or - for Stdin; empty for none.
	// The token itself is in no setting: others on the machine can see what is on a command
	// line. See JoinToken.
	JoinTokenFile string
	// Stdin is the standard input; no setting.
	Stdin io.Reader
	// SingleNode says that a list of peers which names no other node is meant: this one is
	// a cluster by itself, until others join.
	SingleNode bool
	// Watcher makes a node that joins a member that never votes.
	Watcher bool
	// MaxLogFormat, if not 0, is the newest log format that the node says it
	// reads: as long as one member names an older one, the cluster writes no newer,
	// and can still be set back to the release before.
	MaxLogFormat uint64
	// TrustData makes the node start though its data directory was set back to an older
	// copy, and the others accept it.
	TrustData bool
	// StayDown makes the process of a node that ended for good, because its data is
	// damaged, its cluster does not take it, or ErrUnguarded or ErrAlone holds, wait until
	// it is stopped.
	StayDown bool
	// ServerPrefix, if not empty, goes into the prefix of this node's ranges
	// instead of its tag.
	ServerPrefix string

	// TLSCert, TLSKey and TLSCA are PEM files.
	TLSCert, TLSKey, TLSCA string
	// Admin holds names of client certificates: as long as there are no roles,
	// dangerous calls are kept to them. One * alone allows them to every caller. Without
	// any, a node with TLS refuses them to all, and needs roles to start.
	Admin []string
	// Audit is the file that records what changed the cluster, and denied calls; empty
	// for none.
	Audit string
	// Insecure allows listening without TLS on more than loopback.
	Insecure bool

	// HeartbeatTimeout is how long a follower waits for its leader. Raft's other timeouts
	// follow from it; see cluster.Timings.
	HeartbeatTimeout time.Duration
	// SnapshotBytes is how many bytes of log entries a start replays at most, so that a
	// snapshot is taken after them; one entry counts as 4 KiB at least.
	SnapshotBytes bytesize.Size

	// CallTimeout bounds every call, also one with a later deadline.
	CallTimeout time.Duration

	// ReserveFor is for how long HiLo ranges go on at the usual rate while the node is
	// cut off, from numbers that the cluster grants in advance; 0 for not at all.
	ReserveFor time.Duration

	// MaxInFlight bounds the calls in flight on the node.
	MaxInFlight int
	// MaxHeldBytes bounds what the node holds for callers: requests, and answers that
	// were not read. One caller gets half of it, and a connection for each 64 KiB.
	MaxHeldBytes bytesize.Size

	// StorageWatchdog is how long one write to the log may take before the
	// process ends. It is above HeartbeatTimeout, so that slow is not yet dead. A leader
	// transfers leadership after a sixth of it.
	StorageWatchdog time.Duration
	// LeaderPriority is this node's: leadership goes to the voter with the greatest, and
	// with 0 the node leads only if no other voter can.
	LeaderPriority int
	// StorageLowMark is how many bytes must be free on the disk for operations
	// to be proposed.
	StorageLowMark bytesize.Size

	// LogLevel is debug, info, warn or error; LogFormat text or json.
	LogLevel, LogFormat string

	// Tuning is no setting: tests have one, and 'idnode dev' says where its nodes are.
	Tuning failpoint.Tuning
}

// Default returns the configuration where nothing is given. The parts that are
// configured have the same numbers for themselves; a test holds them together.
func Default() Config {
	return Config{
		GRPC: "127.0.0.1:7400",
		Raft: "127.0.0.1:7401",
		HTTP: "127.0.0.1:7402",

		HeartbeatTimeout: 250 * time.Millisecond,
		SnapshotBytes:    64 << 20,

		CallTimeout: 2100 * time.Millisecond,

		MaxInFlight:  4_096,
		MaxHeldBytes: 64 << 20,

		StorageWatchdog: 3 * time.Second,
		LeaderPriority:  1,
		StorageLowMark:  64 << 20,

		LogLevel:  "info",
		LogFormat: "text",
	}
}

// TLS says whether the node has a certificate.
func (c *Config) TLS() bool { return c.TLSCert != "" }
