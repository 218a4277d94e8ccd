package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/idnode/idnode/cluster/member"
)

// errStarted means that Start was called twice.
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
	if !n.record.get().InCluster() {
		if err := n.starter.findPlace(ctx); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	n.checkClusterID()
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

// checkClusterID asks an operator to put the cluster's id into the settings, or the right one.
// A recovery gives a cluster another id, so a wrong one is only a warning.
func (n *Node) checkClusterID() {
	id := fmt.Sprintf("%x", n.ClusterID())
	switch {
	case n.cfg.ClusterID == "" && len(n.cfg.Join) == 0:
		n.log.Warn("put cluster-id into the settings of all nodes: without it, nodes that have all lost their data begin a new cluster, and give every id again", "cluster-id", id)
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
