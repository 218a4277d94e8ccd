package cluster

import (
	"context"
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
// far as they answer soon, and in the background from then on. An error ends the node,
// whenever it is found.
func (n *Node) compareList(ctx context.Context) error {
	check := member.ListCheck{
		Self: n.member, ClusterID: n.ClusterID(), Listed: member.ListOf(n.cfg.PeerList, n.cfg.Join),
		Members: func() []*raftlogv1.Member { return n.roster.refresh().members }, Greeter: n.cfg.Peers, Tell: n.doubtList,
	}
	if len(check.Listed) == 0 {
		return nil
	}
	judged, verdict := make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(judged) })
	n.life.run(func(ctx context.Context) {
		err := check.Run(ctx, once)
		if err != nil {
			err = fmt.Errorf("cluster: %w", err)
			n.life.fail(err)
		}
		verdict <- err
	})
	select {
	case <-judged:
	case err := <-verdict:
		return err
	case <-time.After(listWait):
	case <-ctx.Done():
	}
	return nil
}

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
