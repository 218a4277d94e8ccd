package simulation

import (
	"slices"
	"sync"

	"github.com/idnode/idnode/test/history"
)

// quorums cuts and heals directions between nodes, and records which nodes have
// no quorum for that reason: from after a cut until before any direction opens
// again, so that no call within that time can have had one. A direction that opens
// lets through what waited: where each is open at another time, a question gets
// through in one, and its answer in the other (seed 23014). Crashes are left out,
// since the moment in which a node is back is not known.
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
		q.back()
	}
	for _, e := range edges {
		q.world.network.setCut(e, cut)
	}
	q.losing()
}

// heal heals the network.
func (q *quorums) heal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.back()
	q.world.network.heal()
}

// losing records which nodes have no quorum from here on.
func (q *quorums) losing() {
	if q.world.plan.churn || q.world.plan.scenario == removals {
		return // The members, and so the majority, change at no certain moment.
	}
	for _, s := range q.world.servers {
		if !q.lost[s.host] && !q.has(s.host) {
			q.record(history.Lost, s)
		}
	}
}

// back records that nodes without a quorum may have one from here on.
func (q *quorums) back() {
	for _, s := range q.world.servers {
		if q.lost[s.host] {
			q.record(history.Back, s)
		}
	}
}

func (q *quorums) record(kind history.Kind, s *server) {
	q.lost[s.host] = kind == history.Lost
	q.world.history.add(history.Op{Kind: kind, Node: s.tag(), Call: q.world.history.now(), Outcome: history.OK})
}

// has says whether a node may have a quorum: it, or one that it reaches in
// however many steps, reaches a majority at once.
func (q *quorums) has(host string) bool {
	reached := []string{host}
	for i := 0; i < len(reached); i++ {
		at := q.neighbours(reached[i])
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
func (q *quorums) neighbours(host string) []string {
	var all []string
	for _, s := range q.world.servers {
		if s.host == host || !q.world.network.isCut(edge{host, s.host}) && !q.world.network.isCut(edge{s.host, host}) {
			all = append(all, s.host)
		}
	}
	return all
}
