package apply

import (
	"time"
)

const (
	// comparisonAge is how old a comparison with a member may be: a few pings.
	comparisonAge = 5 * time.Second
	// leaderGrace is how long the leader's state must differ before that alone counts
	// against this node. Other members answer in that time.
	leaderGrace = 3 * time.Second
)

// Comparison is the newest comparison of this node's state with another member's, both at the
// same log index.
type Comparison struct {
	Index, Own, Other uint64
	// made is when they were compared, differs since when they have differed.
	made, differs time.Time
}

func (c Comparison) same() bool { return c.Own == c.Other }

func (c Comparison) fresh(now time.Time) bool {
	return !c.made.IsZero() && now.Sub(c.made) <= comparisonAge
}

// Divergence compares this node's state with those of other members, and decides whether this
// node's state is the wrong one. It has no clock and no lock.
type Divergence struct {
	// waiting are states of members at indexes that this node has not applied yet, by raw Raft
	// id. A state stays until it is compared: a node that is always behind would otherwise
	// never compare a state.
	waiting map[string]StateAt
	newest  map[string]Comparison
	// restores is how often the state had been replaced when it was last compared.
	restores uint64
}

// NewDivergence returns a Divergence that has compared nothing.
func NewDivergence() *Divergence {
	return &Divergence{waiting: map[string]StateAt{}, newest: map[string]Comparison{}}
}

// Heard takes a member's state. An index of 0 is from a member that has applied
// nothing since its snapshot.
func (d *Divergence) Heard(id string, at StateAt) {
	if _, waits := d.waiting[id]; !waits && at.Index > 0 {
		d.waiting[id] = at
	}
}

// Compare compares the waiting states with the node's own, and returns the comparisons,
// by id, that are the first to differ.
func (d *Divergence) Compare(now time.Time, own *States) map[string]Comparison {
	if n := own.replaced(); n != d.restores {
		// The compared state is no longer this node's.
		d.restores = n
		clear(d.newest)
	}
	var began map[string]Comparison
	for id, theirs := range d.waiting {
		hash, what := own.at(theirs.Index)
		if what == notYet {
			continue
		}
		delete(d.waiting, id)
		if what == known && d.made(now, id, Comparison{Index: theirs.Index, Own: hash, Other: theirs.Hash, made: now}) {
			if began == nil {
				began = map[string]Comparison{}
			}
			began[id] = d.newest[id]
		}
	}
	return began
}

// made records a Comparison and reports whether a difference begins with it.
func (d *Divergence) made(now time.Time, id string, c Comparison) bool {
	before := d.newest[id]
	begins := !c.same() && (before.same() || !before.fresh(now))
	switch {
	case begins:
		c.differs = now
	case !c.same():
		c.differs = before.differs
	}
	d.newest[id] = c
	return begins
}

// Differing returns those whose state differs from the node's, by id.
func (d *Divergence) Differing(now time.Time) map[string]bool {
	all := map[string]bool{}
	for id, c := range d.newest {
		if c.fresh(now) && !c.same() {
			all[id] = true
		}
	}
	return all
}

// Against returns the Comparison that proves this node's state wrong, and the other member. A
// state is wrong if a majority of the voters have another state; or if the leader has another
// state and no majority is known to have this node's. For the leader only the first rule
// applies: of two members that differ the leader stays. leader is empty if it is this node, or
// unknown.
func (d *Divergence) Against(now time.Time, self, leader string, voters []string) (id string, c Comparison, wrong bool) {
	same, other := 0, 0
	for _, voter := range voters {
		switch v := d.newest[voter]; {
		case voter == self:
			same++
		case !v.fresh(now):
		case v.same():
			same++
		default:
			other++
			id, c = voter, v
		}
	}
	majority := len(voters)/2 + 1
	if other >= majority {
		return id, c, true
	}
	l := d.newest[leader]
	return leader, l, l.fresh(now) && !l.same() && now.Sub(l.differs) >= leaderGrace && same < majority
}
