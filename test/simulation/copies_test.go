package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

// mixCopies has machines come back, again and again until ctx ends, with what an operator may
// find there: copies of different age, or empty directories, because nothing is mounted.
func (n *nemesis) mixCopies(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, settles/2)
		if n.random.IntN(2) == 0 {
			n.restoreCopies(ctx)
		} else {
			n.unmount(ctx)
		}
	}
}

// restoreCopies stops all nodes, and starts them in any order, all but one with older copies
// that they are told to trust. The last leader has its own disk, with all that ever was.
func (n *nemesis) restoreCopies(ctx context.Context) {
	leader, nodes := n.leader(ctx), n.shuffled()
	older := slices.DeleteFunc(slices.Clone(nodes), func(s *server) bool { return s == leader })
	// A database that is first used in between has no ceiling yet, so it is asked again once they are down.
	known := func() bool {
		return !slices.ContainsFunc(older, func(s *server) bool { return !s.ceilings.known(settles / 2) })
	}
	if leader == nil || !known() {
		return
	}
	copied := map[*server]*image{}
	for _, s := range older {
		copied[s] = s.disk.copy()
		sleep(ctx, time.Duration(n.random.Int64N(int64(2*time.Second))))
	}
	release := n.down(older)
	led := n.leads(leader)
	sleep(ctx, 10*n.world.plan.diskLatency) // Its disk may still write what the others have, and so was committed.
	releaseLeader := n.down([]*server{leader})
	defer releaseLeader()
	defer release()
	if !led || !known() || ctx.Err() != nil {
		return
	}
	n.world.log.Info("fault", "kind", "copies", "nodes", hosts(older), "newest", leader.host)
	n.made++
	for _, s := range older {
		s.trusts.Store(true)
		s.ceilings.passed()
		s.disk.putBack(copied[s])
	}
	first, second := release, releaseLeader
	if n.random.IntN(2) == 0 {
		first, second = second, first
	}
	first()
	sleep(ctx, pick[time.Duration](n.random, 0, 300, 3000)*time.Millisecond)
	second()
	n.world.network.settle(nodes)
	sleep(ctx, settles)
	if ctx.Err() != nil {
		return // They may not have read the switch yet.
	}
	for _, s := range older { // The next time they start without the switch.
		s.trusts.Store(false)
	}
}

// leads says whether a machine's node leads, as far as it knows itself.
func (n *nemesis) leads(s *server) bool {
	ctx, cancel := context.WithTimeout(n.world.ctx, 100*time.Millisecond)
	defer cancel()
	r, err := n.client.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	return err == nil && r.GetSelf().GetRole() == idnodev1.Role_ROLE_LEADER
}

// trusted has the disk count as the machine's own from here on.
func (s *session) trusted() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.live.older, s.disk.durable.older = false, false
}

// settle has liveness be judged from now on.
func (n *network) settle(machines []*server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range machines {
		n.trouble(edge{from: s.host}, time.Now())
	}
}

// unmount has some machines' nodes, or all, start once or more with empty directories, and then
// with their own again.
func (n *nemesis) unmount(ctx context.Context) {
	nodes := n.shuffled()
	nodes = nodes[:1+n.random.IntN(len(nodes))]
	if !n.knowsCluster(ctx) {
		return
	}
	n.world.log.Info("fault", "kind", "nothing is mounted", "nodes", hosts(nodes))
	n.made++
	for _, empty := range []bool{true, false} {
		release := n.down(nodes)
		for _, s := range nodes {
			s.empty.Store(empty)
			s.disk.swap(empty)
		}
		release()
		sleep(ctx, time.Duration(n.random.Int64N(int64(5*time.Second))))
	}
	sleep(ctx, settles)
}

// knowsCluster asks a node for the cluster's id, and says whether that is known.
func (n *nemesis) knowsCluster(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := n.client.cluster(n.server()).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if id := r.GetClusterId(); err == nil && id != "" {
		n.world.clusterID.Store(&id)
	}
	return n.world.clusterID.Load() != nil
}

// swap puts an empty disk in the place of the machine's own, or that back. No process runs.
func (d *disk) swap(empty bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = nil
	if empty {
		d.durable, d.away = newImage(), d.durable
	} else {
		d.durable, d.away = d.away, nil
	}
}
