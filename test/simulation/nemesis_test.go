package simulation

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// nemesis makes faults until ctx ends.
type nemesis struct {
	world  *world
	random *rand.Rand
	client *client
	made   int
	// last is when the last fault was made.
	last time.Time
}

func (n *nemesis) run(ctx context.Context) {
	faults := n.world.plan.faults
	if len(faults) == 0 {
		return
	}
	for n.last = time.Now(); ctx.Err() == nil; {
		sleep(ctx, time.Duration(n.random.Int64N(int64(2*n.world.plan.calm))))
		if ctx.Err() == nil && n.make(ctx, pick(n.random, faults...)) {
			n.made++
			n.last = time.Now()
		}
	}
}

// length draws how long a fault lasts: mostly short, sometimes long.
func (n *nemesis) length() time.Duration {
	limit := pick(n.random, 100*time.Millisecond, 800*time.Millisecond, 5*time.Second)
	return time.Duration(n.random.Int64N(int64(limit)))
}

func (n *nemesis) server() *server { return pick(n.random, n.world.machines()...) }

// make begins one fault, unless it must not be made now. Faults overlap: one is
// there while the nodes recover from another.
func (n *nemesis) make(ctx context.Context, f fault) bool {
	s, net := n.server(), n.world.network
	n.world.log.Info("fault", "kind", string(f), "node", s.host)
	switch f {
	case cutOff:
		n.cut(n.around(func(h string) bool { return h == s.host }))
	case partition:
		side := n.random.Uint32()
		n.cut(n.around(func(h string) bool { return side>>(h[0]-'A')&1 == 1 }))
	case oneWay:
		n.cut([]edge{{s.host, n.server().host}})
	case deafness:
		n.cut([]edge{{s.host, clientHost(n.random.IntN(n.world.plan.clients))}})
	case resets:
		other := n.server().host
		if n.random.IntN(2) == 0 {
			other = clientHost(n.random.IntN(n.world.plan.clients))
		}
		net.reset(s.host, other, n.random.IntN(2) == 0)
	case crashes:
		s.current().kill(false)
	case powerLoss:
		s.current().kill(true)
	case torn:
		in := 1 + n.random.IntN(12)
		s.disk.change(func(d *diskFaults) { d.crashIn = in })
	case stalls:
		until := time.Now().Add(n.length())
		s.disk.change(func(d *diskFaults) { d.stallUntil = until })
	case ioErrors:
		in := 1 + n.random.IntN(30)
		s.disk.change(func(d *diskFaults) { d.errorIn = in })
	case restarts:
		s.current().stop()
	case leaderTransfers:
		n.transferLeadership(ctx, s)
	case orphans:
		n.orphan(ctx)
	case setBack:
		if !s.ceilings.known(time.Since(n.last)) {
			return false
		}
		s.ceilings.passed()
		s.disk.setBack()
		s.current().kill(n.random.IntN(2) == 0)
	case blackouts:
		for _, s := range n.world.machines() {
			s.current().kill(true)
		}
	}
	return true
}

// around are the directions between nodes on the one side and on the other. A removed one
// may still vote.
func (n *nemesis) around(inside func(host string) bool) []edge {
	var edges []edge
	all := n.world.all()
	for _, a := range all {
		for _, b := range all {
			if inside(a.host) != inside(b.host) {
				edges = append(edges, edge{a.host, b.host})
			}
		}
	}
	return edges
}

// cut cuts directions, and heals them after a while.
func (n *nemesis) cut(edges []edge) {
	n.world.quorums.setCuts(edges, true)
	time.AfterFunc(n.length(), func() { n.world.quorums.setCuts(edges, false) })
}

func (n *nemesis) transferLeadership(ctx context.Context, to *server) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, _ = n.client.cluster(to).TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: to.tag()}) // It may fail as it likes.
}

// orphan lets a leader write what reaches no other node, and then crash. It comes
// back soon before or after another was elected.
func (n *nemesis) orphan(ctx context.Context) {
	s := n.leader(ctx)
	if s == nil {
		return
	}
	edges := n.around(func(h string) bool { return h == s.host })
	n.world.quorums.setCuts(edges, true)
	last, cancel := context.WithTimeout(ctx, time.Duration(n.random.Int64N(int64(150*time.Millisecond))))
	n.client.onceWithin(last, s, history.Op{Kind: history.Next, Name: "orders", Count: 1}, n.client.next)
	cancel()
	release := s.hold()
	defer release()
	s.current().kill(n.random.IntN(4) == 0)
	n.world.quorums.setCuts(edges, false)
	if n.random.IntN(4) != 0 {
		n.awaitOther(ctx, s)
	}
	sleep(ctx, time.Duration(n.random.Int64N(int64(longestDelay))))
}

// awaitOther waits until another machine leads, for so long as elections take.
func (n *nemesis) awaitOther(ctx context.Context, than *server) {
	for range 100 {
		if l := n.leader(ctx); ctx.Err() != nil || l != nil && l != than {
			return
		}
		sleep(ctx, 10*time.Millisecond)
	}
}

// leader returns the machine that leads, as far as some node knows; nil if it
// knows of none.
func (n *nemesis) leader(ctx context.Context) *server {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	s := n.server()
	r, err := n.client.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	for _, other := range n.world.machines() {
		if err == nil && other.tag() == r.GetLeaderTag() {
			return other
		}
	}
	return nil
}

// heal ends all faults.
func (w *world) heal() {
	w.healing.Store(true)
	w.quorums.heal()
	for _, s := range w.machines() {
		s.disk.change(func(d *diskFaults) { *d = diskFaults{latency: min(d.latency, 5*time.Millisecond)} })
		s.disk.hurry()
	}
}
