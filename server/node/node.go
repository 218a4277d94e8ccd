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
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
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
	// Process, if not 0, is the number of this process in place of a random one.
	Process uint64
	// Network, if set, is used in place of TCP, and LookupHost, if set, in place of the
	// system's resolver: see cluster.Config.
	Network    cluster.Network
	LookupHost func(ctx context.Context, host string) ([]string, error)
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
	process uint64
	network cluster.Network
	// lookupHost is Options.LookupHost.
	lookupHost func(ctx context.Context, host string) ([]string, error)
	watch      func(*fsm.State) cluster.StateMachine

	// What New makes, in the order in which it is made.
	state    *fsm.State
	pool     *peer.Pool
	callers  *callers
	cluster  *cluster.Node
	counters *etag.Counters
	keeper   *etags.Keeper
	// reserve is nil on a node that keeps none.
	reserve   *reserve.Keeper
	service   *service.Service
	readiness *readiness
	// certs is nil on a node without TLS.
	certs *certificates
	// audit is nil on a node that records nothing.
	audit    *audit.Log
	server   *grpcapi.Server
	listener net.Listener
	http     port
	// metricsPort is one of metrics and health alone, if they have an address.
	metricsPort port
	metrics     *metrics.Metrics
	tracing     *tracing.Tracing

	// background are the node's own goroutines; they end with the server.
	background sync.WaitGroup
}

// New puts a node together: it claims the data directory and the gRPC and HTTP
// ports, and serves nothing yet. If it fails nothing is left open.
func New(opts Options) (*Node, error) {
	n := &Node{
		cfg: opts.Config, log: opts.Logger, version: opts.Version, tracing: opts.Tracing, now: opts.Now, storage: opts.Storage,
		process: opts.Process, network: opts.Network, lookupHost: opts.LookupHost, watch: opts.Watch,
	}
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
func (n *Node) HTTPAddr() string { return n.http.address() }

// MetricsAddr is where metrics and health have a port of their own; empty if they
// have none.
func (n *Node) MetricsAddr() string { return n.metricsPort.address() }

// HeldBytes is what is held for callers.
func (n *Node) HeldBytes() int64 { return n.callers.budget.Held() }

// Alive returns why the node hangs, or nil; it does not return if one of the locks hangs
// that every call takes. It asks no other node.
func (n *Node) Alive() error {
	n.state.Hash()
	n.cluster.Status()
	return n.cluster.Alive()
}

// reloadLimit bounds Reload where the audit log's disk hangs.
const reloadLimit = time.Second

// Reload goes on in the audit log that is at its path now. Certificates need no reload: their
// files are looked at all the time.
func (n *Node) Reload() {
	n.log.Info("told to reload")
	ctx, cancel := context.WithTimeout(context.Background(), reloadLimit)
	defer cancel()
	_ = n.audit.Reopen(ctx) // The audit log tells of a failure.
}

// Ready returns nil once the node serves everything: it has a quorum, its state
// is as new as the cluster's, and its tag is confirmed. It returns an error when
// ctx ends, the node has ended, or it is found not to be guarded, which ends it.
func (n *Node) Ready(ctx context.Context) error { return n.readiness.await(ctx) }

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
		n.readiness.health.Follow(ctx, n.readiness)
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
			n.stop() // Nothing is wrong with it.
			return err
		}
		if errors.Is(err, member.ErrRemoved) {
			n.leave() // Its data are sound: what it answers is right.
		}
		return errors.Join(err, n.abandon())
	}
	n.log.Info("stopping")
	n.stop()
	return nil
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
	n.background.Go(func() { n.certs.follow(following, n.metrics) })
	n.background.Go(func() { n.callers.keepConnections(following, n.certs) })
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
