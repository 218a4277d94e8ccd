package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/calllog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/server/tracing"
)

// Options is what a node is made of.
type Options struct {
	// Config is a configuration that config.Load has validated.
	Config *config.Config
	// Logger hears what the node does.
	Logger *slog.Logger
	// Version is the program's version, shown in the status.
	Version string
	// Tracing follows calls; nil for a node without traces. The node ends it.
	Tracing *tracing.Tracing
	// Now is the clock that is written into log entries; nil means time.Now.
	Now func() time.Time
	// Storage, if set, is used in place of the data directory.
	Storage Storage
	// Network, if set, is used in place of TCP.
	Network cluster.Network
	// Watch, if set, returns what the log is applied to in place of the state: a
	// state machine that looks on and passes everything on to it.
	Watch func(*fsm.State) cluster.StateMachine
}

// Storage is where a node keeps what must outlive its process.
type Storage interface {
	cluster.Storage
	// OpenEtags opens the counters of server-side ids of the node with this raw
	// Raft id. mustExist is set if it may have used them before.
	OpenEtags(nodeID []byte, mustExist bool) (etag.Store, error)
}

// Node is one idnode server. Run is called once; the other methods are safe for
// concurrent use.
type Node struct {
	cfg     *config.Config
	log     *slog.Logger
	version string
	now     func() time.Time
	storage Storage
	network cluster.Network
	watch   func(*fsm.State) cluster.StateMachine

	// What New makes, in the order in which it is made.
	state *fsm.State
	pool  *peer.Pool
	// connections are those of the gRPC port.
	connections *peer.Connections
	// budget bounds what is held for callers, and refused the log of connections that
	// are not taken.
	budget   *budget.Budget
	refused  calllog.Budget
	cluster  *cluster.Node
	counters *etag.Counters
	keeper   *etags.Keeper
	service  *service.Service
	health   *grpcapi.Health
	// certs is nil on a node without TLS.
	certs *tlsconf.Material
	// oldCertificates holds the tags of which oldCertificate has warned.
	oldCertificates sync.Map
	// audit is nil on a node that records nothing.
	audit    *audit.Log
	server   *grpc.Server
	listener net.Listener
	// http and httpListener are nil on a node without an HTTP port.
	http         *httpapi.Server
	httpListener net.Listener
	metrics      *metrics.Metrics
	tracing      *tracing.Tracing
	// metricsPort and metricsListener are nil unless metrics have an address of
	// their own.
	metricsPort     *httpapi.Server
	metricsListener net.Listener

	// started says that the node has been ready once, stopping that it will not be
	// again.
	started, stopping atomic.Bool

	// background are the node's own goroutines; they end with the server.
	background sync.WaitGroup
}

// New puts a node together: it claims the data directory and the gRPC and HTTP
// ports, and serves nothing yet. If it fails nothing is left open.
func New(opts Options) (*Node, error) {
	n := &Node{cfg: opts.Config, log: opts.Logger, version: opts.Version, tracing: opts.Tracing, now: opts.Now, storage: opts.Storage, network: opts.Network, watch: opts.Watch}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if err := n.dataLoss(n.assemble()); err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

// GRPCAddr is where the gRPC port listens.
func (n *Node) GRPCAddr() string { return n.listener.Addr().String() }

// RaftAddr is where others reach the Raft port.
func (n *Node) RaftAddr() string { return n.cfg.AdvertiseRaft }

// HTTPAddr is where the HTTP port listens; empty for a node without one.
func (n *Node) HTTPAddr() string {
	if n.httpListener == nil {
		return ""
	}
	return n.httpListener.Addr().String()
}

// MetricsAddr is where metrics and health have a port of their own; empty if they
// have none.
func (n *Node) MetricsAddr() string {
	if n.metricsListener == nil {
		return ""
	}
	return n.metricsListener.Addr().String()
}

// Alive returns as long as the node does not hang: it takes the locks of the
// replicated state and of the cluster, which every call takes, and asks no other node.
func (n *Node) Alive() {
	n.state.Hash()
	n.cluster.Status()
}

// readyPause is between two looks at whether the node is ready.
const readyPause = 20 * time.Millisecond

// Ready returns nil once the node serves everything: it has a quorum, its state
// is as new as the cluster's, and its tag is confirmed. It returns an error when
// ctx ends, the node has ended, or it is found not to be guarded, which ends it.
func (n *Node) Ready(ctx context.Context) error {
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		err := n.ready(ctx)
		if err == nil {
			err = n.guarded()
		}
		if err == nil {
			n.started.Store(true) // Before anybody is told.
			return nil
		}
		if errors.Is(err, config.ErrUnguarded) {
			return err
		}
		select {
		case <-n.cluster.Done():
			return errors.Join(errors.New("the node has ended"), n.cluster.Err())
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (n *Node) ready(ctx context.Context) error {
	if err := n.ownReady(); err != nil {
		return err
	}
	return n.cluster.Linearize(ctx)
}

// guarded judges a node that was in a cluster before, once its state is as new as the
// cluster's: only now it is known whether there are roles. Until then dangerous calls are
// refused, and so they are later if the roles are taken away.
func (n *Node) guarded() error {
	if n.started.Load() {
		return nil
	}
	return n.cfg.CheckGuard(n.state.Roles().Table.Set())
}

// ownReady returns what the node itself is not ready for yet.
func (n *Node) ownReady() error {
	if err := n.cluster.Standing(); err != nil {
		return err
	}
	if _, confirmed := n.cluster.Tag(); !confirmed {
		return errors.New("the node's tag is not confirmed yet")
	}
	if !n.keeper.Ready() {
		return errors.New("the node does not give server-side ids yet")
	}
	return nil
}

// followHealth says that the node serves once everything works for the first
// time, and from then on whenever it is in touch with a quorum.
// What it sends to unguarded ends the node.
func (n *Node) followHealth(ctx context.Context, unguarded chan<- error) {
	err := n.Ready(ctx)
	if errors.Is(err, config.ErrUnguarded) {
		unguarded <- err
	}
	if err == nil {
		n.log.Info("ready", "grpc", n.GRPCAddr(), "http", n.HTTPAddr(), "metrics", n.MetricsAddr())
		n.health.Follow(ctx, n.cluster)
	}
}

// survey looks for the fullest counters once the state is there, and from then on
// now and then.
func (n *Node) survey(ctx context.Context) {
	if n.Ready(ctx) == nil {
		n.metrics.Survey(ctx, n.state)
	}
}

// Run serves until ctx ends, and then stops cleanly in bounded time and returns
// nil; or it returns the error that ended the node. Either way everything is
// closed.
func (n *Node) Run(ctx context.Context) error {
	err := n.dataLoss(n.runUntil(ctx, n.serve()))
	if err != nil {
		n.log.Error("the node ends by itself", "error", err)
		if errors.Is(err, config.ErrUnguarded) {
			return errors.Join(err, n.stop()) // Nothing is wrong with it.
		}
		if errors.Is(err, member.ErrRemoved) {
			n.leave() // Its data are sound: what it answers is right.
		}
		return errors.Join(err, n.abandon())
	}
	n.log.Info("stopping")
	return n.stop()
}

// runUntil starts the node's place in the cluster and waits for the first
// reason to end. nil means that ctx ended.
func (n *Node) runUntil(ctx context.Context, served <-chan error) error {
	following, cancel := context.WithCancel(ctx)
	defer n.background.Wait()
	defer cancel()
	unguarded := make(chan error, 1)
	n.background.Go(func() { n.followHealth(following, unguarded) })
	n.background.Go(func() { n.survey(following) })
	n.background.Go(func() { n.followCertificates(following) })
	n.background.Go(func() { n.keepConnections(following) })
	if err := n.cluster.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Interrupted while it started: that is a clean end too.
		}
		// The Raft library keeps to itself why a snapshot cannot be opened.
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
