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
		Members: func() []*raftlogv1.Member { return n.roster.refresh().members }, Greeter: n.cfg.Peers,
		Vouched: n.standing.vouched.Load, Tell: n.standing.doubt,
		Report: func(own, foreign bool) {
			n.standing.report(own, foreign)
			once()
		},
	}
	n.standing.asking.Store(true)
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

// standing is whether the node is known to be in the right place, and not in that of
// another cluster's node, whose callers it would serve.
//
// Invariant: once it is confirmed it stays so until the process ends.
type standing struct {
	// asking is set until the listed nodes' answers count; foreign while one of them
	// belongs to another cluster.
	asking, foreign, vouched atomic.Bool
	// doubts are what is wrong with the listed nodes.
	doubts atomic.Pointer[[]string]
	log    *slog.Logger
}

// report takes what the nodes listed said.
func (s *standing) report(own, foreign bool) {
	if own {
		s.vouched.Store(true)
	}
	s.foreign.Store(foreign)
	s.asking.Store(false)
}

// quorum records that a quorum of the node's own cluster is in reach. A quorum of the
// node alone is no evidence against an answer of another cluster.
func (s *standing) quorum(ofOthers bool) {
	if !s.asking.Load() && (ofOthers || !s.foreign.Load()) {
		s.vouched.Store(true)
	}
}

// The reasons for which a node does not serve callers.
var (
	errStillAsking = errors.New("the nodes listed are being asked for their cluster")
	errNotVouched  = errors.New("a node listed belongs to another cluster, and none of this one's own has answered")
)

func (s *standing) err() error {
	switch {
	case s.vouched.Load():
		return nil
	case s.asking.Load():
		return errStillAsking
	case s.foreign.Load():
		return errNotVouched
	}
	return nil
}

// Standing returns nil unless this node could be in the place of another cluster's. Then
// it serves no callers: a listed node belongs to another cluster, and neither another
// listed node nor a quorum of its own cluster has confirmed it since the start.
func (n *Node) Standing() error { return n.standing.err() }

// doubt reports that the listed nodes are not all of this node's cluster.
func (s *standing) doubt(doubts []string) {
	s.doubts.Store(&doubts)
	if len(doubts) == 0 {
		s.log.Info("all nodes listed that answer are of this cluster")
	}
	for _, doubt := range doubts {
		s.log.Warn(doubt)
	}
}

// Warnings returns what is wrong with how the node was started, one line each: why it
// finds no place in a cluster, or that a listed node belongs to another. It works from
// Open on, and makes no calls.
func (n *Node) Warnings() []string {
	all := n.starter.warnings()
	if doubts := n.standing.doubts.Load(); doubts != nil {
		all = append(all, *doubts...)
	}
	return all
}
