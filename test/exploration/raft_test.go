package exploration

import (
	"fmt"

	"github.com/idnode/idnode/test/model"
)

// This file is Raft as the paper promises it. When a step may be taken is for package
// model to say.

// differs returns the place from which on two logs differ, or the shorter one ends.
func differs(a, b *member) uint8 {
	i := uint8(0)
	for i < a.Length && i < b.Length && a.terms[i] == b.terms[i] {
		if a.entries[i] != b.entries[i] {
			panic("two entries of one term and place")
		}
		i++
	}
	return i
}

// put appends an entry to a member's log.
func (p *member) put(term uint8, entry contentID) {
	if p.Length == maxLog {
		panic("the log is too short for a world")
	}
	p.terms[p.Length], p.entries[p.Length] = term, entry
	p.Put()
}

// write has a member append an entry. Where no crash is left, nothing tells an entry that
// is not synced yet from one that was not appended, so it is synced at once.
func (x *explorer) write(w *world, m int, term uint8, entry contentID) {
	w.members[m].put(term, entry)
	if w.budget.crashes == 0 {
		x.sync(w, m)
	}
}

// clear empties the places behind the first n.
func (p *member) clear(n uint8) {
	clear(p.terms[n:])
	clear(p.entries[n:])
}

// append has a follower take the leader's next entry, or hear of its term.
func (x *explorer) append(w *world, f, leader int) {
	p, l := &w.members[f], &w.members[leader]
	x.follow(w, f, l.Term)
	next := differs(p, l)
	if next == l.Length {
		return
	}
	x.obeys(f, p.Cut(next))
	p.clear(next)
	x.write(w, f, l.terms[next], l.entries[next])
}

// follow has a member hear of a term. A leader of an earlier one steps down.
func (x *explorer) follow(w *world, f int, term uint8) {
	p := &w.members[f]
	led := p.Leads
	x.obeys(f, p.Hear(term))
	if led {
		x.leadershipLost(w, f)
	}
}

// sync makes a member's log durable, which may commit entries.
func (x *explorer) sync(w *world, m int) {
	w.members[m].Sync()
	w.commit()
	x.catchUp(w)
}

// commit commits what a majority has synced, if its newest entry is of the leader's term.
func (w *world) commit() {
	leader := w.leader()
	if leader < 0 {
		return
	}
	l := &w.members[leader]
	for n := l.Synced; n > w.committed && l.terms[n-1] == l.Term; n-- {
		have := 0
		for i := range w.members {
			p := &w.members[i]
			if p.Term == l.Term && !p.Down && p.Synced >= n && differs(p, l) >= n {
				have++
			}
		}
		if model.MayCommit(l.Term, l.terms[n-1], have, members) {
			copy(w.decided[:n], l.terms[:n])
			w.committed = n
			return
		}
	}
}

// catchUp has followers apply what is committed at once, in worlds where they do not lag.
// Nobody sees when a follower applies an entry, except by the index that a first try
// with a request id gets there, and by its snapshot.
func (x *explorer) catchUp(w *world) {
	for m := range w.members {
		for !x.scenario.lagging && !w.members[m].Leads && w.canApply(m) {
			x.applyNext(w, m)
		}
	}
}

// electable reports whether a voter gives a candidate its vote.
func (w *world) electable(candidate, voter int) bool {
	c, v := &w.members[candidate], &w.members[voter]
	if c.Down || v.Down || c.Synced < c.Length || v.Synced < v.Length {
		return false
	}
	return model.MayVote(c.end(), v.end())
}

func (p *member) end() model.End[uint8] {
	if p.Length == 0 {
		return model.End[uint8]{Term: 1}
	}
	return model.End[uint8]{Term: p.terms[p.Length-1], Length: p.Length}
}

// elect makes a member the leader of the next term.
func (x *explorer) elect(w *world, candidate, voter int) {
	w.term++
	x.follow(w, voter, w.term)
	x.follow(w, candidate, w.term) // It may have led before, and not have heard of the leader since.
	c := &w.members[candidate]
	c.Lead()
	for i := range w.committed {
		if c.terms[i] != w.decided[i] {
			panic("a leader without a committed entry")
		}
	}
	x.write(w, candidate, w.term, 0)
}

// canApply reports whether a member knows that its next entry is committed. It has synced
// an entry before it hears of that.
func (w *world) canApply(m int) bool {
	p := &w.members[m]
	return p.MayApply(p.Applied+1, w.committed) == nil && p.terms[p.Applied] == w.decided[p.Applied] && (!p.Leads || p.Term == w.term)
}

// crash ends a member's process. What it has not synced is lost.
func (x *explorer) crash(w *world, m int) {
	p := &w.members[m]
	p.clear(p.Synced)
	p.Crash()
	p.state = p.snapshot
	for n := range w.nodes {
		if w.nodes[n].target == 1+uint8(m) {
			w.nodes[n].taken = false
		}
	}
	if m < nodes {
		x.callersLost(w, m)
	}
}

// recover has all begin anew with a member's state, as members of another cluster. What is on its way is lost.
func (x *explorer) recover(w *world, m int) {
	state := x.machine.recoveredFrom(w.members[m].state)
	w.term++
	for i := range w.members {
		w.members[i] = member{state: state, snapshot: state, Member: model.Member[uint8]{Term: w.term, Leads: i == m}}
	}
	for o := range w.nodes {
		x.callersLost(w, o)
	}
	w.messages, w.decided, w.committed, w.recovered = [maxMessages]message{}, [maxLog]uint8{}, 0, true
}

// restart begins a member's process again, from its snapshot and log.
func (x *explorer) restart(w *world, m int) {
	p := &w.members[m]
	p.Start()
	if p.Base > 0 {
		p.state = x.machine.install(fresh, p.snapshot)
	}
	x.compare(w, m)
	w.commit()
	x.catchUp(w)
}

// install has a follower take the leader's snapshot.
func (x *explorer) install(w *world, f, leader int) {
	p, l := &w.members[f], &w.members[leader]
	x.follow(w, f, l.Term)
	p.clear(0)
	copy(p.terms[:l.Base], l.terms[:])
	copy(p.entries[:l.Base], l.entries[:])
	p.Length = l.Base
	x.obeys(f, p.Snapshot(l.Base, w.committed))
	x.obeys(f, p.Install(l.Base))
	p.state = x.machine.install(p.state, l.snapshot)
	p.snapshot = p.state
	x.compare(w, f)
}

// compare has a member compare its state with those at the same index.
func (x *explorer) compare(w *world, m int) {
	p := &w.members[m]
	for i := range w.members {
		q := &w.members[i]
		if i == m || q.Down || q.Applied != p.Applied {
			continue
		}
		if a, b := &x.machine.states[p.state], &x.machine.states[q.state]; a.hash != b.hash {
			x.fail("the states of %s and %s differ at log index %d", memberName(m), memberName(i), x.at(p.Applied)-1)
		}
	}
}

// at is the log index of a place.
func (x *explorer) at(place uint8) uint64 { return began + 1 + uint64(place) }

// obeys notes that a member takes a step that the model does not allow.
func (x *explorer) obeys(m int, err error) {
	if err != nil {
		x.fail("%s %v", memberName(m), err)
	}
}

// fail notes what must not happen. The first finding counts.
func (x *explorer) fail(format string, args ...any) {
	if x.found == "" {
		x.found = fmt.Sprintf(format, args...)
	}
}
