package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/history"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/server/tracing"
	"github.com/idnode/idnode/server/webpage"
)

// Options are the configuration and dependencies of a node.
type Options struct {
	// Config must have been validated by config.Load.
	Config  *config.Config
	Logger  *slog.Logger
	Version string
	// Tracing traces calls; nil for a node without traces. The node shuts it down.
	Tracing *tracing.Tracing
	// Now is the clock that is written into log entries; nil means time.Now.
	Now func() time.Time
	// Storage, if set, is used in place of the data directory.
	Storage Storage
	// Room, if set, is the room in place of the data directory's.
	Room func() (disk.Room, error)
	// Process, if not 0, replaces the random number of this process.
	Process uint64
	// Network, if set, is used in place of TCP, and LookupHost, if set, in place of the
	// system's resolver: see cluster.Config.
	Network    cluster.Network
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// Watch, if set, returns the state machine that the log is applied to. It must pass
	// everything on to the state.
	Watch func(*fsm.State) cluster.StateMachine
}

// Storage replaces the data directory.
type Storage interface {
	cluster.Storage
	// OpenEtags opens the etag counters of the node with this raw Raft id. mustExist is set
	// if the node may have used them before.
	OpenEtags(nodeID []byte, mustExist bool) (etag.Store, error)
}

// Node is one idnode server. Run is called once; the other methods are safe for
// concurrent use.
type Node struct {
	opts Options
	// cfg is that of opts, and log its Logger; never nil.
	cfg *config.Config
	log *slog.Logger

	// The parts that New makes, in this order.
	state    *fsm.State
	pool     *peer.Pool
	callers  *callers
	cluster  *cluster.Node
	counters *etag.Counters
	keeper   *etags.Keeper
	// reserve is nil on a node without a reserve.
	reserve   *reserve.Keeper
	service   *service.Service
	readiness *readiness
	// certs is nil on a node without TLS.
	certs *certificates
	// audit is nil on a node without an audit log.
	audit    *audit.Log
	server   *grpcapi.Server
	listener net.Listener
	// members serves the calls of other members, on the Raft port.
	members *peer.Server
	http    port
	// page is nil on a node without the HTTP port; busiest are the names it shows.
	page    *webpage.Page
	busiest history.Busiest
	// metricsPort is the port of metrics and health, if they have an address.
	metricsPort port
	metrics     *metrics.Metrics

	// background are the node's own goroutines; they end with the server.
	background sync.WaitGroup
}

// New assembles a node: it claims the data directory and the gRPC and HTTP ports, and serves
// nothing yet. If it fails, nothing is left open.
func New(opts Options) (*Node, error) {
	n := &Node{opts: opts, cfg: opts.Config, log: opts.Logger}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if err := n.dataLoss(n.assemble()); err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

// GRPCAddr returns the address of the gRPC port, as host:port.
func (n *Node) GRPCAddr() string { return n.listener.Addr().String() }

// RaftAddr returns the advertised address of the Raft port, as host:port.
func (n *Node) RaftAddr() string { return n.cfg.AdvertiseRaft }

// HTTPAddr returns the address of the HTTP port; empty for a node without one.
func (n *Node) HTTPAddr() string { return n.http.address() }

// MetricsAddr returns the address of a separate port of metrics and health; empty if there
// is none.
func (n *Node) MetricsAddr() string { return n.metricsPort.address() }

// HeldBytes returns the bytes held for callers.
func (n *Node) HeldBytes() int64 { return n.callers.budget.Held() }

// Alive returns why the node hangs, or nil. It blocks if a lock hangs that every call takes.
// It asks no other node.
func (n *Node) Alive() error {
	n.state.Hash()
	n.cluster.Status()
	return n.cluster.Alive()
}

// reloadLimit bounds Reload where the audit log's disk hangs.
const reloadLimit = time.Second

// Reload reopens the audit log at its path. Certificates need no reload: their files are
// checked every second.
func (n *Node) Reload() {
	n.log.Info("told to reload")
	ctx, cancel := context.WithTimeout(context.Background(), reloadLimit)
	defer cancel()
	_ = n.audit.Reopen(ctx) // The audit log logs a failure.
}

// Ready returns nil once the node serves everything: it has a quorum, its state is as new as
// the cluster's, and its tag is confirmed. It returns an error if ctx ends, the node has
// ended, or the node is found to be unguarded, which ends it.
func (n *Node) Ready(ctx context.Context) error { return n.readiness.await(ctx) }

// followHealth reports the node as serving once it is ready for the first time, and from then
// on whenever it is in touch with a quorum. A value on unguarded ends the node.
func (n *Node) followHealth(ctx context.Context, unguarded chan<- error) {
	err := n.Ready(ctx)
	if errors.Is(err, config.ErrUnguarded) {
		unguarded <- err
	}
	if err == nil {
		n.log.Info("ready", "grpc", n.GRPCAddr(), "http", n.HTTPAddr(), "metrics", n.MetricsAddr())
		n.readiness.health.Follow(ctx, n.readiness)
	}
}

func (n *Node) survey(ctx context.Context) {
	if n.Ready(ctx) == nil {
		n.metrics.Survey(ctx, n.state)
	}
}

// ErrKilled is the cause of a context whose end is to end a node as a crash does.
var ErrKilled = errors.New("killed")

// Run serves until ctx ends, stops cleanly in bounded time and returns nil; or it returns the
// error that ended the node. Everything is closed when it returns. A node whose ctx ended by
// ErrKilled does not stop cleanly: it transfers, returns and records nothing.
func (n *Node) Run(ctx context.Context) error {
	err := n.dataLoss(n.runUntil(ctx, n.serve()))
	if err != nil {
		n.log.Error("the node ends by itself", "error", err)
		if errors.Is(err, config.ErrUnguarded) {
			n.stop() // The node is sound.
			return err
		}
		if errors.Is(err, member.ErrRemoved) {
			n.leave() // The node's data are sound, and so are its answers.
		}
		return errors.Join(err, n.abandon())
	}
	if errors.Is(context.Cause(ctx), ErrKilled) {
		return n.abandon()
	}
	n.log.Info("stopping")
	n.stop()
	return nil
}

// runUntil starts the cluster node and waits for the first reason to end. nil means that ctx
// ended.
func (n *Node) runUntil(ctx context.Context, served <-chan error) error {
	following, cancel := context.WithCancel(ctx)
	defer n.background.Wait()
	defer cancel()
	unguarded := make(chan error, 1)
	n.background.Go(func() { n.followHealth(following, unguarded) })
	n.background.Go(func() { n.survey(following) })
	if n.page != nil {
		n.background.Go(func() { n.page.Follow(following) })
	}
	n.background.Go(func() { n.certs.follow(following, n.metrics) })
	n.background.Go(func() { n.callers.keepConnections(following, n.certs) })
	if err := n.cluster.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Interrupted while starting: a clean end too.
		}
		// The Raft library does not return why a snapshot cannot be opened.
		if failure := n.cluster.Err(); failure != nil && !errors.Is(err, failure) {
			err = errors.Join(err, failure)
		}
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-n.cluster.Done():
		return n.cluster.Err()
	case <-n.counters.Broken():
		return fmt.Errorf("the counters of server-side ids cannot be written: %w", etag.ErrBroken)
	case err := <-unguarded:
		return err
	case err := <-served:
		return err
	}
}
