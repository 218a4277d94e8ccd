package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/raftlogger"
)

// Transport is a raft.Transport. It is safe for concurrent use.
type Transport struct {
	*raft.NetworkTransport
	stream      *stream
	answers     *answers
	steppedDown stepDown
	inbound     *inbound
	// installer sends snapshots.
	installer *raft.NetworkTransport
	catchUps  *raftguard.CatchUps
	transfer  transfer
	// stable waits for this node's own disk: see HoldAnswers. It may be nil.
	stable func(ctx context.Context, index uint64) error
}

// Without these two methods the library works differently: elections have no pre-vote, and
// its shutdown leaves the port open.
var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// New starts accepting at once. The Directory must therefore know this node's cluster.
func New(cfg Config) *Transport {
	cfg = cfg.withDefaults()
	s := newStream(cfg)
	network := newNetwork(cfg.Logger, s, DefaultMaxPool, cfg.Timeout)
	t := &Transport{
		NetworkTransport: network, stream: s, answers: newAnswers(), inbound: newInbound(s, network.Consumer()),
		installer: newNetwork(cfg.Logger, installer{s}, 0, cfg.InstallTimeout), catchUps: raftguard.NewCatchUps(),
	}
	s.work.Go(func() { t.inbound.run(s.ctx) })
	return t
}

// newNetwork returns the library's transport over a stream; pool bounds the idle connections to
// one node.
func newNetwork(log *slog.Logger, s raft.StreamLayer, pool int, timeout time.Duration) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: byID{}, Logger: raftlogger.New(log), Stream: s, MaxPool: pool, Timeout: timeout,
		// Several messages in flight can leave a follower permanently without any
		// (hashicorp/raft issue 612), and leave the rest of a burst waiting for the next
		// heartbeat.
		MaxRPCsInFlight: 1,
	})
}

// Consumer implements raft.Transport: the requests of other nodes, after inspection.
func (t *Transport) Consumer() <-chan raft.RPC { return t.inbound.toRaft }

// Address returns a server's address in Raft's configuration and messages: its id.
func Address(id raft.ServerID) raft.ServerAddress { return raft.ServerAddress(id) }

// byID makes the library dial ids, whatever addresses its configuration has.
type byID struct{}

func (byID) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) { return Address(id), nil }

// SetHeartbeatHandler does nothing, so heartbeats are handled on Raft's main goroutine
// like every other message. Handled on another goroutine, a heartbeat of a newer term can
// change the term while an old leader writes its term into an entry, and then two logs differ
// under one term (hashicorp/raft issue 695): one id would be given out twice. While the main
// goroutine waits for a write or a snapshot of the leader, inbound answers the heartbeats that
// change nothing.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// Needed is raftguard.CatchUps.Needed.
func (t *Transport) Needed() uint64 { return t.catchUps.Needed() }

// Disconnect closes the connections to and from one node, so that it has to greet again, and
// forgets its process. It is called for a member that was removed, or has moved.
func (t *Transport) Disconnect(id raft.ServerID) {
	t.stream.nodes.change(id, func(n *knownNode) {
		n.process, n.seen, n.dialFailed, n.failing = 0, false, nil, time.Time{} // The new address was not dialled yet.
	})
	t.catchUps.Ended(id)
	t.stream.conns.closeIf(func(c *conn) bool { return c.peer == string(id) })
}

// CloseStreams closes all connections and keeps the port open. It unblocks goroutines that
// wait for a peer.
func (t *Transport) CloseStreams() {
	t.NetworkTransport.CloseStreams()
	t.stream.conns.closeIf(func(*conn) bool { return true })
}

// Close closes the port and all connections, dialled and accepted, and returns when no
// handshake runs. It may be called more than once.
func (t *Transport) Close() error {
	_ = t.installer.Close() // The installer holds nothing but the stream's connections.
	return t.NetworkTransport.Close()
}
