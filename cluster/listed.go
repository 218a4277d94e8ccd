package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// listWait is how long a start waits for those that the node was told of. Nodes that
// are up answer within a fraction of it; the others are asked in the background.
const listWait = 500 * time.Millisecond

// compareList compares the nodes that this one was told of with its cluster: at once as
// far as they answer soon, and in the background from then on. An error ends the node.
func (n *Node) compareList(ctx context.Context) error {
	listed := member.ListOf(n.cfg.PeerList, n.cfg.Join)
	if len(listed) == 0 {
		return nil
	}
	judged, result := make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(judged) })
	check := member.ListCheck{
		Self: n.member, ClusterID: n.ClusterID(), Listed: listed,
		Members: func() []*raftlogv1.Member { return n.roster.refresh().members }, Greeter: n.cfg.Peers,
		Vouched: n.standing.vouched.Load, Tell: n.doubtList,
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

// standing is what is known of whether the node is where it belongs, and not in the
// place of another cluster's node, whose callers it would serve.
//
// Invariant: once it is vouched for it stays so until the process ends.
type standing struct {
	// asking is set until the answers of the nodes listed count, foreign while one of
	// them is of another cluster.
	asking, foreign, vouched atomic.Bool
}

// report takes what the nodes listed said.
func (s *standing) report(own, foreign bool) {
	if own {
		s.vouched.Store(true)
	}
	s.foreign.Store(foreign)
	s.asking.Store(false)
}

// quorum takes note that a quorum of the node's own cluster is in reach. One that is the
// node alone says nothing against an answer of another cluster.
func (s *standing) quorum(ofOthers bool) {
	if !s.asking.Load() && (ofOthers || !s.foreign.Load()) {
		s.vouched.Store(true)
	}
}

// The reasons for which a node keeps from callers whom it may not be there for.
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
// it serves no callers: a node that it was told of belongs to another cluster, and
// neither another such node nor a quorum of its own cluster has vouched for it since it
// was started.
func (n *Node) Standing() error { return n.standing.err() }

// doubtList makes known that the nodes that this one was told of are not all of its
// cluster.
func (n *Node) doubtList(doubts []string) {
	n.warnings.list.Store(&doubts)
	if len(doubts) == 0 {
		n.log.Info("all nodes listed that answer are of this cluster")
	}
	for _, doubt := range doubts {
		n.log.Warn(doubt)
	}
}

// Warnings returns, in words and each in one line, what is wrong with how the node was
// started: why it finds no place in a cluster, or that a node that it was told of
// belongs to another. It works from Open on, and asks nobody.
func (n *Node) Warnings() []string { return n.warnings.all() }

// warnings are what is wrong with how the node was started, for its callers.
type warnings struct {
	// place is what keeps the node from finding its place; nil once it has one. list
	// is what is wrong with the nodes that it was told of.
	place atomic.Pointer[error]
	list  atomic.Pointer[[]string]
}

func (w *warnings) all() []string {
	var all []string
	if err := w.place.Load(); err != nil {
		all = append(all, "no place in a cluster yet: "+strings.ReplaceAll((*err).Error(), "\n", "; "))
	}
	if list := w.list.Load(); list != nil {
		all = append(all, *list...)
	}
	return all
}
