package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/transport"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// Defaults of Config.
const (
	DefaultHeartbeat        = 250 * time.Millisecond
	DefaultSnapshotInterval = 60 * time.Second
	DefaultSnapshotBytes    = 64 << 20
	// DefaultStallLimit is far above a slow fsync and, with an election, below the five seconds
	// after which a cluster with a hung disk must have a new leader.
	DefaultStallLimit   = 3 * time.Second
	DefaultPromoteAfter = 2 * time.Second
	DefaultTrustWait    = time.Minute
	DefaultFreeBytes    = 64 << 20
	DefaultCallLimit    = 2100 * time.Millisecond
)

const (
	// entryReplay is how many bytes an entry counts for at least: a start takes time for
	// each, however short.
	entryReplay = 4 << 10
	// reasonTime is what is left of a call for its error after LeaderWait.
	reasonTime = 100 * time.Millisecond
)

// Addresses are where a node is reached.
type Addresses = member.Addresses

// TLS makes the Raft port's connections mutual TLS.
type TLS = transport.TLS

// Config is what a Node needs.
type Config struct {
	// DataDir is the node's own directory; it is created if it does not exist.
	DataDir string
	// Storage, if set, is used in place of DataDir.
	Storage Storage
	// Tag is the requested tag; if empty, the cluster chooses one. A node with a tag must be
	// given the same tag, or an empty one.
	Tag string
	// RaftListen is the address the Raft port listens on.
	RaftListen string
	Advertise  Addresses
	// PeerList lists the first members' gRPC addresses by tag, this node included; equal on all
	// of them. If empty, the node joins, or forms a cluster by itself.
	PeerList map[string]string
	// Join lists gRPC addresses of members to join through.
	Join []string
	// JoinToken returns the token to join with, and is called only on a join; nil means
	// none.
	JoinToken func() (string, error)
	// Watcher makes the node a member without a vote, when it joins.
	Watcher bool
	// DialRaft overrides the addresses of other nodes' Raft ports, by tag.
	DialRaft map[string]string
	// Process is the number by which others know this process; 0 means a random number.
	Process uint64
	// Network opens the Raft port and connections to others; nil means TCP.
	Network Network
	// LookupHost returns the IP addresses of a host name. nil means the system's resolver,
	// or with a Network, that this gets addresses with their names.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// TLS is nil for plain connections.
	TLS *TLS

	// Heartbeat is how long a follower waits for the leader before it starts an election, up to
	// twice as long; at least 20 ms. Raft's other timeouts follow from it: see raftConfig.
	Heartbeat time.Duration
	// SnapshotBytes is the size of the applied entries after which a snapshot is taken, even
	// if they are few: an entry of a busy cluster holds a thousand calls, and a node that
	// starts replays the entries after its newest snapshot.
	SnapshotBytes int64
	// SnapshotThreshold is the number of applied entries after which a snapshot is taken. It is
	// checked every SnapshotInterval. 0 means SnapshotBytes at entryReplay each.
	SnapshotThreshold uint64
	SnapshotInterval  time.Duration
	// TrailingLogs is how many entries a snapshot leaves for slow followers; 0 means half
	// of SnapshotThreshold.
	TrailingLogs uint64
	// Now is the clock that a leader writes into entries; nil means time.Now.
	Now func() time.Time
	// LeaderWait is how long a call waits without a leader; 0 means so much less than
	// CallLimit that its caller still gets the reason.
	LeaderWait time.Duration
	// StallLimit is how long a write to the log may take before the process is ended: a
	// leader with a stalled disk would stay leader permanently. After a sixth of it this node
	// transfers leadership.
	StallLimit time.Duration
	// LeaderPriority is this node's: leadership goes to the voter with the greatest that
	// has caught up, and with 0 this node leads only if no other voter can. It is no part of
	// the replicated state: members tell each other in their pings.
	LeaderPriority uint32
	// PromoteAfter is how long a new member must keep up before it votes.
	PromoteAfter time.Duration

	// MinFreeBytes is the low-water mark of free space, below which nothing is proposed.
	MinFreeBytes uint64
	// Room returns the room of the storage; nil means that of DataDir, or enough with a
	// Storage.
	Room func() (disk.Room, error)

	// TrustData means that an operator trusts the data directory: other members
	// forget how far they saw this node's disk, and it is not compared with this node's
	// own record.
	TrustData bool
	// TrustWait is how long such a node waits, before it takes part in an election, until all
	// members have greeted it.
	TrustWait time.Duration

	// ClusterID is the id of the node's cluster as its operator knows it, 32 hexadecimal
	// digits; empty if it is not known. A node joins no other.
	ClusterID string

	// LogFormat is the newest log format the state machine reads.
	LogFormat uint32

	StateMachine StateMachine
	// TakeSnapshot freezes the state; called from Apply's goroutine.
	TakeSnapshot func() Snapshot
	Registry     Registry
	Peers        Peers
	Logger       *slog.Logger
	// ServeCalls serves the calls of other members, until calls ends: the Raft port's
	// connections for calls, whose remote addresses are Raft ids.
	ServeCalls func(calls net.Listener)
	// OnAnnounce is called with the answer to each announcement of this node, the first
	// some time after Start. It must be quick.
	OnAnnounce func(*raftlogv1.MemberResult)
	// CallLimit bounds the wait of each operation; 0 means DefaultCallLimit.
	CallLimit time.Duration
	Events    Events

	// Version is the program's, and CertificateEnds the end of the node's certificate:
	// nil without TLS. Other members show them.
	Version         string
	CertificateEnds func() time.Time
	// Figures are what the node did in its last seconds, without the space left, which is
	// filled in; nil sends none. It is called for each ping of a member, about once a second
	// and every few milliseconds while the leader is lost, and must be quick.
	Figures func() *peerv1.Figures
}

func (c Config) withDefaults() Config {
	c.Heartbeat = cmp.Or(c.Heartbeat, DefaultHeartbeat)
	c.SnapshotInterval = cmp.Or(c.SnapshotInterval, DefaultSnapshotInterval)
	c.SnapshotBytes = cmp.Or(c.SnapshotBytes, DefaultSnapshotBytes)
	c.SnapshotThreshold = cmp.Or(c.SnapshotThreshold, uint64(max(1, c.SnapshotBytes/entryReplay)))
	c.TrailingLogs = cmp.Or(c.TrailingLogs, max(1, c.SnapshotThreshold/2))
	c.StallLimit = cmp.Or(c.StallLimit, DefaultStallLimit)
	c.PromoteAfter = cmp.Or(c.PromoteAfter, DefaultPromoteAfter)
	c.TrustWait = cmp.Or(c.TrustWait, DefaultTrustWait)
	c.MinFreeBytes = cmp.Or(c.MinFreeBytes, DefaultFreeBytes)
	c.CallLimit = cmp.Or(c.CallLimit, DefaultCallLimit)
	c.LeaderWait = cmp.Or(c.LeaderWait, c.CallLimit-reasonTime)
	c.LogFormat = cmp.Or(c.LogFormat, raftlog.FormatVersion)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Network == nil {
		c.Network = tcp{}
		if c.LookupHost == nil {
			c.LookupHost = peers.LookupHost
		}
	}
	if c.Storage == nil && c.DataDir != "" {
		c = c.withFiles()
	}
	if c.Room == nil {
		c.Room = func() (disk.Room, error) { return disk.Room{}, errors.ErrUnsupported }
	}
	return c
}

// lease returns how long a leader leads without contact with a quorum: less than Heartbeat, so
// that an old leader stops before a new one starts.
func (c Config) lease() time.Duration { return c.Heartbeat * 4 / 5 }

// commitTimeout returns how soon a leader that writes nothing more tells followers of a new commit
// index: reads on followers wait for it.
func (c Config) commitTimeout() time.Duration { return min(20*time.Millisecond, c.Heartbeat/4) }

// trustWait returns for how long elections wait for an operator's sake.
func (c Config) trustWait() time.Duration {
	if c.TrustData {
		return c.TrustWait
	}
	return 0
}
