package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

var errStarted = errors.New("cluster: the node was started already")

// Start finds the node's place in a cluster, unless its data directory has it, and starts
// Raft. It returns when Raft runs, which is before there is a leader; finding a place may
// take until other nodes are up, or ctx ends. After an error the node must be shut down.
// The Raft port is opened only when the place is settled.
func (n *Node) Start(ctx context.Context) error {
	err := errStarted
	n.startOnce.Do(func() { err = n.start(ctx) })
	return err
}

func (n *Node) start(ctx context.Context) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.lifecycle.ctx, cancel)()
	if !n.record.Get().InCluster() {
		if err := n.findPlace(ctx); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	n.checkClusterID()
	n.checkWatcher()
	if err := n.compareList(ctx); err != nil {
		return err
	}
	e, err := n.startEngine()
	if err != nil {
		return err
	}
	n.up.Store(e)
	context.AfterFunc(n.lifecycle.ctx, e.silence)
	return n.lifecycle.failure()
}

// checkWatcher says what the node is where its settings say another thing: they count when it joins, and no more.
func (n *Node) checkWatcher() {
	switch is := n.record.Member(); {
	case is.GetWatcher() && !n.cfg.Watcher:
		n.log.Warn("this node is a watcher and does not vote, also without the setting watcher: 'idnode cluster promote' changes it",
			"tag", is.GetTag())
	case !is.GetWatcher() && n.cfg.Watcher:
		n.log.Warn("this node votes, also with the setting watcher: 'idnode cluster demote' changes it", "tag", is.GetTag())
	}
}

// checkClusterID asks an operator to put the right cluster id into the settings. A recovery
// changes the cluster's id, so a wrong id is only a warning.
func (n *Node) checkClusterID() {
	id := fmt.Sprintf("%x", n.ClusterID())
	switch {
	case n.cfg.ClusterID == "" && len(n.cfg.Join) == 0:
		n.log.Warn("put cluster-id into the settings of all nodes: without it, nodes that have all lost their data begin a new cluster, and "+
			"give every id again", "cluster-id", id)
	case n.cfg.ClusterID != "" && n.cfg.ClusterID != id:
		n.log.Warn("the settings have the cluster-id of another cluster than the data directory is of: put in this one", "cluster-id", id)
	}
}

// silence cuts a failed node off from the others: from then on it neither votes nor
// leads, however long its own shutdown takes. A leader with a hung disk would otherwise
// stay leader until its process is gone. A removed node is not cut off.
func (e *engine) silence() {
	if err := e.node.lifecycle.failure(); err != nil && !errors.Is(err, member.ErrRemoved) {
		_ = e.transport.Close() // Shutdown closes it again, and reports the error.
	}
}

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
	check := member.ListCheck{
		Self: n.record.Member, ClusterID: n.ClusterID(), Listed: listed,
		Members: func() []*raftlogv1.Member { return n.table.Refresh().Registered }, Greeter: n.cfg.Peers, State: n.clusterCheck,
	}
	judged, result := n.clusterCheck.Begin(), make(chan error, 1)
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

// findPlace finds the node's place in a cluster at its first start.
func (n *Node) findPlace(ctx context.Context) error {
	defer n.noPlace.Store(nil)
	place, err := n.seek(ctx)
	if err != nil {
		return err
	}
	n.log.Info("found a place in a cluster", "tag", place.Tag, "cluster", fmt.Sprintf("%x", place.ClusterID), "founder", place.Founder)
	return n.settle(place)
}

func (n *Node) settle(place member.Place) error {
	err := n.record.Update(func(r *member.Record) bool {
		place.Apply(r)
		return true
	})
	n.table.Refresh()
	return err
}

func (n *Node) seek(ctx context.Context) (member.Place, error) {
	self := n.record.Member()
	tell := func(err error) { n.noPlace.Store(&err) }
	switch {
	case len(n.cfg.PeerList) > 0:
		return member.FirstStart{Self: self, Peers: n.cfg.PeerList, Greeter: n.cfg.Peers, Logger: n.log, Tell: tell}.Run(ctx)
	case len(n.cfg.Join) > 0:
		return n.join(ctx, self, tell)
	case n.cfg.Watcher:
		return member.Place{}, errors.New("a watcher cannot be a cluster of one")
	}
	if self.Tag == "" {
		self.Tag = "A"
	}
	return member.Alone(self), nil
}

func (n *Node) join(ctx context.Context, self *raftlogv1.Member, tell func(error)) (member.Place, error) {
	token := ""
	if n.cfg.JoinToken != nil {
		var err error
		if token, err = n.cfg.JoinToken(); err != nil {
			return member.Place{}, err
		}
	}
	return member.Join{
		Self: self, Addresses: n.cfg.Join, ClusterID: n.cfg.ClusterID, Token: token, Joiner: n.cfg.Peers, Logger: n.log, Tell: tell,
	}.Run(ctx)
}

func (n *Node) placeWarnings() []string {
	err := n.noPlace.Load()
	if err == nil {
		return nil
	}
	return []string{"no place in a cluster yet: " + strings.ReplaceAll((*err).Error(), "\n", "; ")}
}
