package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/transport"
)

// Network is how a node listens, and reaches other nodes. Addresses are host:port.
type Network interface {
	Listen(address string) (net.Listener, error)
	DialContext(ctx context.Context, address string) (net.Conn, error)
}

type tcp struct{}

func (tcp) Listen(address string) (net.Listener, error) { return transport.ListenTCP(address) }

func (tcp) DialContext(ctx context.Context, address string) (net.Conn, error) {
	return transport.DialTCP(ctx, address)
}

func (e *engine) openTransport() error {
	n, cfg := e.node, e.node.cfg
	listener, err := cfg.Network.Listen(cfg.RaftListen)
	if err != nil {
		return fmt.Errorf("cluster: opening the Raft port: %w", err)
	}
	e.transport = transport.New(transport.Config{
		Process: cfg.Process, Listener: listener, ClusterID: n.ClusterID(), LocalID: n.record.Name(),
		Directory: peers.NewDirectory(n.table, &e.hint, e.witness.Running), Witness: e.witness, Voters: e.witness.Electorate,
		Configured: n.table.NewestConfiguration, Boundary: n.store.Boundary, VoteAnswered: e.timeouts.VoteAnswered,
		LeaderHeard: e.timeouts.LeaderHeard, AnswerHeard: e.timeouts.AnswerHeard,
		Dial: cfg.DialRaft, DialContext: n.hosts.DialContext, TLS: cfg.TLS, Logger: cfg.Logger,
		OnRefused: func(by transport.Peer, status transport.Status) { refused(n.record, by, status) },
	})
	calls := e.transport.Calls()
	e.serving.Go(func() { cfg.ServeCalls(calls) }) // It ends with the transport.
	return nil
}

// errImpostor means that there are two processes of one node: a data directory
// was copied, and both copies run.
var errImpostor = errors.New("another process with this node's id answers at this node's address: one of the two runs from a copy of " +
	"the data directory; stop that one")

// refused handles that a node refuses Raft connections of this node. Two processes of one id
// could vote twice, so the process that is not at the registered address ends. The end is not
// recorded: once the other process is gone, this node may start.
func refused(own *member.NodeRecord, by transport.Peer, status transport.Status) {
	switch status {
	case transport.Removed:
		own.EndRemoved()
	case transport.SetBack:
		_ = own.EndSetBack(by.Tag + " has seen this node go further, and says how far in its log")
	case transport.Impostor:
		own.Fail(fmt.Errorf("cluster: %s refused this node: %w", by.Tag, errImpostor))
	}
}
