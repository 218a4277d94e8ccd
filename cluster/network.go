package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/transport"
)

// Network is how a node listens, and reaches other nodes. Addresses are host:port.
type Network interface {
	Listen(address string) (net.Listener, error)
	DialContext(ctx context.Context, address string) (net.Conn, error)
}

// tcp is the Network that nodes use unless they are given another.
type tcp struct{}

// Listen implements Network.
func (tcp) Listen(address string) (net.Listener, error) { return transport.ListenTCP(address) }

// DialContext implements Network.
func (tcp) DialContext(ctx context.Context, address string) (net.Conn, error) {
	return transport.DialTCP(ctx, address)
}

// openTransport opens the Raft port.
func openTransport(cfg Config, own *nodeRecord, members *roster, hosts *hosts, disks *diskWitness, voteAnswered func(raft.ServerID, uint64, time.Duration, bool)) (*transport.Transport, error) {
	listener, err := cfg.Network.Listen(cfg.RaftListen)
	if err != nil {
		return nil, fmt.Errorf("cluster: opening the Raft port: %w", err)
	}
	c := transport.Config{
		Process: cfg.Process, Listener: listener, ClusterID: own.get().ClusterID, LocalID: own.name(), Directory: directory{members, disks.raft.Load},
		Witness: disks, Voters: disks.electorate, Configured: func() uint64 { return members.configured() }, VoteAnswered: voteAnswered,
		Dial: cfg.DialRaft, DialContext: hosts.DialContext, OnRefused: own.refusedBy, Logger: cfg.Logger,
		OnProcess: func(m transport.Peer, process uint64) { cfg.Peers.Restarted(m.Tag, process) },
	}
	if cfg.TLS != nil {
		c.ServerTLS, c.ClientTLS, c.NamesTag = cfg.TLS.Server, cfg.TLS.Client, cfg.TLS.NamesTag
	}
	t, err := transport.New(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cluster: %w", err), listener.Close())
	}
	return t, nil
}

// errImpostor means that there are two processes of one node: a data directory
// was copied, and both copies run.
var errImpostor = errors.New("another process with this node's id answers at this node's address: one of the two runs from a copy of the data directory; stop that one")

// refusedBy learns that a node refuses Raft connections of this one. Two processes of one
// id could vote twice, so the one that is not at the registered address ends. That is not
// recorded: once the other is gone, it may start.
func (r *nodeRecord) refusedBy(by transport.Peer, status transport.Status) {
	switch status {
	case transport.Removed:
		r.removed()
	case transport.SetBack:
		_ = r.setBack(by.Tag + " has seen this node go further, and says how far in its log")
	case transport.Impostor:
		r.fail(fmt.Errorf("cluster: %s refused this node: %w", by.Tag, errImpostor))
	}
}

// directory is the transport's view of the table of members.
type directory struct {
	roster *roster
	// raft returns nil before Raft runs.
	raft func() *raft.Raft
}

var _ transport.Directory = directory{}

// Lookup implements transport.Directory. A removed member whose vote still counts is one
// like any other. Before Raft runs here, that is not known, and so neither is the member:
// as a removed one it would end.
func (d directory) Lookup(id string) (transport.Peer, bool) {
	m, ok := d.roster.byServerID(id)
	r := d.raft()
	if !ok || m.GetRemoved() && r == nil {
		return transport.Peer{}, false
	}
	return transport.Peer{ID: id, Tag: m.GetTag(), Address: m.GetRaftAddress(), Removed: configuration{r, d.roster}.left(m)}, true
}
