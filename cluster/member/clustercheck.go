package member

import (
	"errors"
	"log/slog"
	"sync/atomic"
)

// ClusterCheck is whether the node is confirmed to be of its callers' cluster, and does not
// run in place of another cluster's node, whose callers it would serve.
//
// Invariant: once it is confirmed it stays so until the process ends.
type ClusterCheck struct {
	// pending is set until the listed nodes' answers count, otherCluster while one of them
	// belongs to another cluster, isConfirmed from the first answer of this cluster on.
	pending, otherCluster, isConfirmed atomic.Bool
	// judged is closed when the answers count.
	judged chan struct{}
	// warned is about listed nodes that are not of this cluster.
	warned atomic.Pointer[[]string]
	log    *slog.Logger
}

// NewClusterCheck returns the check of a node that knows of no other cluster.
func NewClusterCheck(log *slog.Logger) *ClusterCheck { return &ClusterCheck{log: log} }

// Begin waits for the listed nodes' answers. The channel is closed when they count.
func (s *ClusterCheck) Begin() <-chan struct{} {
	s.judged = make(chan struct{})
	s.pending.Store(true)
	return s.judged
}

func (s *ClusterCheck) Warnings() []string {
	if w := s.warned.Load(); w != nil {
		return *w
	}
	return nil
}

// Report records the answers of the listed nodes: own means that a node of this cluster has
// answered, otherCluster that a node of another has.
func (s *ClusterCheck) Report(own, otherCluster bool) {
	if own {
		s.isConfirmed.Store(true)
	}
	s.otherCluster.Store(otherCluster)
	if s.pending.Swap(false) {
		close(s.judged)
	}
}

// Quorum records that a quorum of the node's own cluster is in reach. A quorum of the
// node alone is no evidence against an answer of another cluster.
func (s *ClusterCheck) Quorum(ofOthers bool) {
	if !s.pending.Load() && (ofOthers || !s.otherCluster.Load()) {
		s.isConfirmed.Store(true)
	}
}

// The reasons for which a node does not serve callers.
var (
	errCheckPending = errors.New("the nodes listed are being asked for their cluster")
	errNotConfirmed = errors.New("a node listed belongs to another cluster, and none of this one's own has answered")
)

// Err returns why the node does not serve callers, or nil.
func (s *ClusterCheck) Err() error {
	switch {
	case s.isConfirmed.Load():
		return nil
	case s.pending.Load():
		return errCheckPending
	case s.otherCluster.Load():
		return errNotConfirmed
	}
	return nil
}

// Warn reports that the listed nodes are not all of this node's cluster.
func (s *ClusterCheck) Warn(warnings []string) {
	s.warned.Store(&warnings)
	if len(warnings) == 0 {
		s.log.Info("all nodes listed that answer are of this cluster")
	}
	for _, w := range warnings {
		s.log.Warn(w)
	}
}
