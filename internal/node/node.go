package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/config"
	"github.com/idnode/idnode/internal/grpcapi"
	"github.com/idnode/idnode/internal/peer"
	"github.com/idnode/idnode/internal/service"
)

// Options is what a node is made of.
type Options struct {
	// Config is a configuration that config.Load has validated.
	Config *config.Config
	// Logger hears what the node does.
	Logger *slog.Logger
	// Version is the program's version, shown in the status.
	Version string
}

// Node is one idnode server. Run is called once; the other methods are safe for
// concurrent use.
type Node struct {
	cfg     *config.Config
	log     *slog.Logger
	version string

	// What New makes, in the order in which it is made.
	pool     *peer.Pool
	cluster  *cluster.Node
	counters *etag.Counters
	keeper   *service.EtagKeeper
	service  *service.Service
	health   *grpcapi.Health
	server   *grpc.Server
	listener net.Listener

	// background are the node's own goroutines; they end with the server.
	background sync.WaitGroup
}

// New puts a node together: it claims the data directory and the gRPC port, and
// serves nothing yet. If it fails nothing is left open.
func New(opts Options) (*Node, error) {
	n := &Node{cfg: opts.Config, log: opts.Logger, version: opts.Version}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if err := n.assemble(); err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

// GRPCAddr is where the gRPC port listens.
func (n *Node) GRPCAddr() string { return n.listener.Addr().String() }

// RaftAddr is where others reach the Raft port.
func (n *Node) RaftAddr() string { return n.cfg.AdvertiseRaft }

// HTTPAddr is where others will reach the HTTP port; nothing listens there yet.
func (n *Node) HTTPAddr() string { return n.cfg.AdvertiseHTTP }

// readyPause is between two looks at whether the node is ready.
const readyPause = 20 * time.Millisecond

// Ready returns nil once the node serves everything: it has a quorum, its state
// is as new as the cluster's, and its tag is confirmed. It returns an error when
// ctx ends or the node has ended.
func (n *Node) Ready(ctx context.Context) error {
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		err := n.ready(ctx)
		if err == nil {
			return nil
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
	if _, confirmed := n.cluster.Tag(); !confirmed {
		return errors.New("the node's tag is not confirmed yet")
	}
	if !n.keeper.Ready() {
		return errors.New("the node does not give server-side ids yet")
	}
	return n.cluster.Linearize(ctx)
}

// followHealth says that the node serves once everything works for the first
// time, and from then on whenever it is in touch with a quorum.
func (n *Node) followHealth(ctx context.Context) {
	if n.Ready(ctx) == nil {
		n.log.Info("ready", "grpc", n.GRPCAddr())
		n.health.Follow(ctx, n.cluster)
	}
}

// Run serves until ctx ends, and then stops cleanly in bounded time and returns
// nil; or it returns the error that ended the node. Either way everything is
// closed.
func (n *Node) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(n.listener) }()
	err := n.runUntil(ctx, served)
	if err != nil {
		n.log.Error("the node ends by itself", "error", err)
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
	n.background.Go(func() { n.followHealth(following) })
	if err := n.cluster.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Interrupted while it started: that is a clean end too.
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
	case err := <-served:
		return fmt.Errorf("the gRPC port: %w", err)
	}
}
