// Package config is the one validated configuration of `idnode serve`: the names of its settings,
// their defaults, and their rules. It opens no file but the configuration's, and acts on nothing.
//
// Every setting has one name: its flag, its key in a YAML file, and, as IDNODE_NAME, its variable.
// An unknown name is an error: a misspelt setting would otherwise silently be the default.
package config

import (
	"io"
	"time"

	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/internal/failpoint"
)

// Config is the configuration of one node. The usage of a setting, in settings.go, says what it is; a comment here
// adds to that. Validate bounds durations below and against each other.
type Config struct {
	Tag string
	// DataDir is the folder that belongs to this node permanently.
	DataDir string

	// Addresses are as host:port.
	GRPC, Raft, HTTP, Metrics string
	// Load fills in those of the advertised addresses that are not given; see fillAdvertised.
	AdvertiseGRPC, AdvertiseRaft, AdvertiseHTTP string

	HTTPHost []string

	// Peer is by tag.
	Peer map[string]string
	// Of Peer and Join, where both are given, Load keeps the one that is this node's way.
	Join []string
	// ClusterID has 32 hexadecimal digits; it is empty where the cluster does not exist yet.
	ClusterID string
	// JoinTokenFile may be - for Stdin. The token itself is in no setting: others on the machine can
	// see what is on a command line.
	JoinTokenFile string
	// Stdin is the standard input; no setting.
	Stdin      io.Reader
	SingleNode bool
	Watcher    bool
	// MaxLogFormat: as long as one member names an older format, the cluster writes no newer,
	// and can still be set back to the release before.
	MaxLogFormat uint64
	TrustData    bool
	// StayDown makes the process of a node that ended for good, because its data is damaged, its
	// cluster does not take it, or ErrUnguarded or ErrAlone holds, wait until it is stopped.
	StayDown     bool
	ServerPrefix string

	TLSCert, TLSKey, TLSCA string
	// Admin holds names of client certificates: as long as there are no roles,
	// dangerous calls are kept to them. One * alone allows them to every caller. Without
	// any, a node with TLS refuses them to all, and needs roles to start.
	Admin    []string
	Audit    string
	Insecure bool

	// HeartbeatTimeout: Raft's other timeouts follow from it; see cluster.Config.
	HeartbeatTimeout time.Duration
	// SnapshotBytes is how many bytes of log entries a start replays at most, so that a
	// snapshot is taken after them; one entry counts as 4 KiB at least.
	SnapshotBytes bytesize.Size

	// CallTimeout bounds every call, also one with a later deadline.
	CallTimeout time.Duration

	ReserveFor time.Duration

	MaxInFlight int
	// MaxHeldBytes bounds requests, and answers that were not read.
	MaxHeldBytes bytesize.Size

	// StorageWatchdog is above HeartbeatTimeout, so that slow is not yet dead.
	StorageWatchdog time.Duration
	LeaderPriority  int
	StorageLowMark  bytesize.Size

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
