package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// listWait is how long a start waits for the listed nodes. Nodes that are up answer
// within a fraction of it; the others are asked in the background.
const listWait = 500 * time.Millisecond

// compareList compares the listed nodes with this node's cluster: those that answer soon
// at once, the others in the background. An error ends the node.
func (n *Node) compareList(ctx context.Context) error {
	listed := member.ListOf(n.cfg.PeerList, n.cfg.Join)
	if len(listed) == 0 {
		return nil
	}
	judged, result := make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(judged) })
	check := member.ListCheck{
		Self: n.record.member, ClusterID: n.ClusterID(), Listed: listed,
		Members: func() []*raftlogv1.Member { return n.roster.refresh().registered }, Greeter: n.cfg.Peers,
		Confirmed: n.clusterCheck.confirmed.Load, Warn: n.clusterCheck.warn,
		Report: func(own, otherCluster bool) {
			n.clusterCheck.report(own, otherCluster)
			once()
		},
	}
	n.clusterCheck.pending.Store(true)
	n.lifecycle.run(func(ctx context.Context) {
		err := check.Run(ctx)
		if err != nil {
			err = fmt.Errorf("cluster: %w", err)
			n.lifecycle.fail(err)
		}
		result <- err
	})
	select {
	case <-judged:
	case err := <-result:
		return err
	case <-time.After(listWait):
	case <-ctx.Done():
	}
	return nil
}

// clusterCheck is whether the node is confirmed to be of its callers' cluster, and does not
// run in place of another cluster's node, whose callers it would serve.
//
// Invariant: once it is confirmed it stays so until the process ends.
type clusterCheck struct {
	// pending is set until the listed nodes' answers count, otherCluster while one of them
	// belongs to another cluster, confirmed from the first answer of this cluster on.
	pending, otherCluster, confirmed atomic.Bool
	// warnings are about listed nodes that are not of this cluster.
	warnings atomic.Pointer[[]string]
	log      *slog.Logger
}

// report records the answers of the listed nodes.
func (s *clusterCheck) report(own, otherCluster bool) {
	if own {
		s.confirmed.Store(true)
	}
	s.otherCluster.Store(otherCluster)
	s.pending.Store(false)
}

// quorum records that a quorum of the node's own cluster is in reach. A quorum of the
// node alone is no evidence against an answer of another cluster.
func (s *clusterCheck) quorum(ofOthers bool) {
	if !s.pending.Load() && (ofOthers || !s.otherCluster.Load()) {
		s.confirmed.Store(true)
	}
}

// The reasons for which a node does not serve callers.
var (
	errCheckPending = errors.New("the nodes listed are being asked for their cluster")
	errNotConfirmed = errors.New("a node listed belongs to another cluster, and none of this one's own has answered")
)

func (s *clusterCheck) err() error {
	switch {
	case s.confirmed.Load():
		return nil
	case s.pending.Load():
		return errCheckPending
	case s.otherCluster.Load():
		return errNotConfirmed
	}
	return nil
}

// ClusterCheck returns nil unless this node could be in the place of another cluster's. Then
// it serves no callers: a listed node belongs to another cluster, and neither another
// listed node nor a quorum of its own cluster has confirmed it since the start.
func (n *Node) ClusterCheck() error { return n.clusterCheck.err() }

// warn reports that the listed nodes are not all of this node's cluster.
func (s *clusterCheck) warn(warnings []string) {
	s.warnings.Store(&warnings)
	if len(warnings) == 0 {
		s.log.Info("all nodes listed that answer are of this cluster")
	}
	for _, w := range warnings {
		s.log.Warn(w)
	}
}

// Warnings returns why the node does not get into touch with its cluster, one line each:
// why it finds no place in one, that a listed node belongs to another, which member it
// looks for in vain, and where, or that no member reaches it. It works from Open on, and
// makes no calls.
func (n *Node) Warnings() []string {
	all := n.starter.warnings()
	if warnings := n.clusterCheck.warnings.Load(); warnings != nil {
		all = append(all, *warnings...)
	}
	if e := n.up.Load(); e != nil {
		all = append(all, e.pinger.unreached()...)
		all = append(all, e.locator.warnings()...)
	}
	return all
}
