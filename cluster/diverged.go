package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
)

// told takes the state of a member that asked how this node is.
func (c *census) told(id string, at stateAt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard(id, at)
}

// heard takes a member's state, and compares it at once: a busy node soon forgets its
// own at that index. The caller holds the lock.
func (c *census) heard(id string, at stateAt) {
	c.divergence.heard(id, at)
	c.compare()
}

// compare compares the states that members told, and reports those that begin to
// differ. The caller holds the lock.
func (c *census) compare() {
	for id, found := range c.divergence.compare(time.Now(), c.e.states) {
		c.e.node.log.Error("another member's state differs from this node's", "member", c.tag(id),
			"index", found.index, "own_hash", hashText(found.own), "its_hash", hashText(found.other))
		if differs := c.e.node.cfg.Events.StateDiffers; differs != nil {
			differs()
		}
	}
}

// judgeState ends the node if its state is the wrong one. The others learn first which
// state it ends with: they go on, and raise the alarm.
func (c *census) judgeState(ctx context.Context) {
	c.mu.Lock()
	c.compare() // The node may have caught up with what waited.
	id, found, wrong := c.divergence.against(time.Now(), string(c.e.id()), c.otherLeader(), c.e.voters())
	c.mu.Unlock()
	if wrong {
		c.ask(ctx)
		c.e.node.diverged(fmt.Sprintf("at log entry %d the hash of its state is %s, that of node %s is %s",
			found.index, hashText(found.own), c.tag(id), hashText(found.other)))
	}
}

// otherLeader returns the raw Raft id of the leader that Raft follows; empty if
// that is this node, or there is none.
func (c *census) otherLeader() string {
	_, name := c.e.raft.LeaderWithID()
	m, ok := c.e.node.roster.byServerID(string(name))
	if !ok || c.e.isSelf(m) || c.e.raft.State() == raft.Leader {
		return ""
	}
	return string(m.GetId())
}

func (c *census) tag(id string) string {
	m, _ := c.e.node.roster.byID([]byte(id))
	return m.GetTag()
}

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// diverged records that this node's state is not the cluster's, and ends it: it
// has given answers, and may have forgotten others, that the log does not hold.
func (n *Node) diverged(why string) {
	err := n.identity.update(func(r *member.Record) bool {
		changed := r.Diverged == ""
		r.Diverged = why
		return changed
	})
	n.life.fail(errors.Join(divergedError(why), err))
}

func divergedError(why string) error { return fmt.Errorf("cluster: %w: %s", member.ErrDiverged, why) }
