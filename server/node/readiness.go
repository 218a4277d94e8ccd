package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

// readiness returns why the node is not ready, in words, or nil. It asks no other
// node, so it may be called often.
func (n *Node) readiness() error {
	switch err := n.cluster.Err(); {
	case errors.Is(err, member.ErrRemoved):
		return errors.New("removed: this node is no member of the cluster any more, and ends")
	case err != nil:
		return errors.New("failed: the node ends by itself, and its log says why")
	case n.stopping.Load():
		return errors.New("stopping: new calls are refused")
	case !n.started.Load():
		return fmt.Errorf("starting: %w", n.startingFor())
	}
	if !n.cluster.HasQuorum() {
		return fmt.Errorf("no quorum: no majority of the voters has been in reach for %s; server-side ids and GUIDs go on",
			n.cluster.QuorumMissing().Truncate(time.Millisecond))
	}
	return nil
}

// fullWarning is what a node says whose storage is full. It is ready all the same: it
// reads, gives server-side ids, and goes on by itself.
const fullWarning = "storage is full, here or on a majority: identities, ranges and claims are refused with STORAGE_FULL until there is room"

// warnings are what a person should know of the node, ready or not.
func (n *Node) warnings() []string {
	warnings := n.cluster.Warnings()
	if n.cluster.StorageFull() {
		warnings = append(warnings, fullWarning)
	}
	return warnings
}

// startingFor returns what a node waits for that has never been ready.
func (n *Node) startingFor() error {
	if err := n.cluster.Standing(); err != nil {
		return err
	}
	if !n.cluster.HasQuorum() {
		return errors.New("no majority of the voters is in reach yet")
	}
	if err := n.ownReady(); err != nil {
		return err
	}
	return errors.New("the state is not known to be as new as the cluster's yet")
}
