package simulation

import (
	"context"
	"sync"
	"time"
)

// removalTakes is how long it may take at most until Raft's configuration follows a removal.
const removalTakes = 150 * time.Millisecond

// removeVoters has one of four voters removed, again and again until ctx ends, and the leader
// lost before Raft's configuration follows, or after. Of the three that remain two are a
// majority; where the configuration did not follow, they need the removed one's vote. Then
// another joins.
func (n *nemesis) removeVoters(ctx context.Context) {
	c := newChurn(n.world)
	defer c.client.close()
	c.ctx = ctx
	for sleep(ctx, settles/4); ctx.Err() == nil; sleep(ctx, settles/4) {
		leader, removed := n.leader(ctx), n.server()
		if leader == nil || removed == leader || !c.settled(removed) || !c.othersKnow(removed) {
			continue
		}
		n.world.log.Info("fault", "kind", "removals", "removed", removed.host, "lost", leader.host)
		n.made++
		n.removeVoter(c, removed, leader)
		c.until("the end of "+removed.host+", which was removed", func(context.Context) bool { return removed.ended() })
		c.join(n.world.add(""))
	}
}

// removeVoter has a voter removed and the leader lost, until liveness was judged.
func (n *nemesis) removeVoter(c *churn, removed, leader *server) {
	removed.off.Store(true)
	var removal sync.WaitGroup
	removal.Go(func() { c.remove(removed) })
	sleep(c.ctx, time.Duration(n.random.Int64N(int64(removalTakes))))
	release := n.trouble(leader)
	sleep(c.ctx, settles)
	release()
	removal.Wait()
}
