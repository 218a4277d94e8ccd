package simulation

import (
	"slices"
	"sync"

	"github.com/idnode/idnode/test/history"
)

// quorums cuts and heals directions between nodes, and records which nodes have
// no quorum for that reason: from after a cut until before it heals, so that no
// call within that time can have had one. Crashes are left out, since nobody
// knows the moment in which a node is back.
type quorums struct {
	world *world
	mu    sync.Mutex
	lost  map[string]bool
}

func newQuorums(w *world) *quorums { return &quorums{world: w, lost: map[string]bool{}} }

// setCuts cuts or heals directions.
func (q *quorums) setCuts(edges []edge, cut bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !cut {
		q.record(func(e edge) bool { return q.world.network.isCut(e) && !slices.Contains(edges, e) })
	}
	for _, e := range edges {
		q.world.network.setCut(e, cut)
	}
	if cut {
		q.record(q.world.network.isCut)
	}
}

// heal heals the network.
func (q *quorums) heal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.record(func(edge) bool { return false })
	q.world.network.heal()
}

// record records which nodes lose their quorum, or get it back, with these cuts.
func (q *quorums) record(cut func(edge) bool) {
	if q.world.plan.churn {
		return // Who is a member, and so what a majority is, changes at no certain moment.
	}
	for _, s := range q.world.servers {
		lost := !q.has(s.host, cut)
		if lost == q.lost[s.host] {
			continue
		}
		q.lost[s.host] = lost
		op := history.Op{Kind: history.Back, Node: s.tag(), Call: q.world.history.now(), Outcome: history.OK}
		if lost {
			op.Kind = history.Lost
		}
		q.world.history.add(op)
	}
}

// has says whether a node may have a quorum: it, or one that it reaches in
// however many steps, reaches a majority at once.
func (q *quorums) has(host string, cut func(edge) bool) bool {
	reached := []string{host}
	for i := 0; i < len(reached); i++ {
		at := q.neighbours(reached[i], cut)
		if len(at) > len(q.world.servers)/2 {
			return true
		}
		for _, n := range at {
			if !slices.Contains(reached, n) {
				reached = append(reached, n)
			}
		}
	}
	return false
}

// neighbours are the nodes that a node reaches and is reached by, itself too.
func (q *quorums) neighbours(host string, cut func(edge) bool) []string {
	var all []string
	for _, s := range q.world.servers {
		if s.host == host || !cut(edge{host, s.host}) && !cut(edge{s.host, host}) {
			all = append(all, s.host)
		}
	}
	return all
}
