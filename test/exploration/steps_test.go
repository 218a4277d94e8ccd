package exploration

import "fmt"

// visit is called for each step of a world, with the world after it. fault says that it
// is a fault, which need not happen; story tells it, and is called at most once, with the
// world before.
type visit func(next *world, fault bool, story func() string)

// steps calls f for each step that can be next.
func (x *explorer) steps(w *world, f visit) {
	x.callSteps(w, f)
	for o := range w.nodes {
		x.nodeSteps(w, o, f)
	}
	for i := range w.messages {
		if w.messages[i].content != 0 && (i == 0 || w.messages[i] != w.messages[i-1]) {
			x.messageSteps(w, i, f)
		}
	}
	for m := range w.members {
		x.memberSteps(w, m, f)
		x.leaderSteps(w, m, f)
	}
}

// step takes a step.
func (x *explorer) step(w *world, f visit, fault bool, do func(next *world), story func() string) {
	next := *w
	do(&next)
	next.forget()
	f(&next, fault, story)
}

// callSteps are those of callers.
func (x *explorer) callSteps(w *world, f visit) {
	for i, c := range x.scenario.calls {
		switch w.calls[i].status {
		case idle:
			if w.members[c.node].Down || !x.mayCall(w, c) {
				continue
			}
			x.step(w, f, false, func(n *world) { x.propose(n, i) }, func() string {
				return fmt.Sprintf("%s is asked: %s", memberName(int(c.node)), c.name)
			})
		case open:
			if w.budget.expiries == 0 {
				continue
			}
			x.step(w, f, true, func(n *world) { n.budget.expiries--; x.expire(n, uint8(i)) }, func() string {
				return "the caller waits no longer: " + c.name
			})
		default:
		}
	}
}

// mayCall reports whether what a call follows has happened: a first try is made, or an
// answer given that is no refusal.
func (x *explorer) mayCall(w *world, c call) bool {
	if c.follows == 0 {
		return true
	}
	before := &w.calls[c.follows-1]
	if c.retry {
		return before.status != idle
	}
	return before.status == answered && x.machine.gains[before.got].refused == 0
}

// nodeSteps are those of a node for its callers.
func (x *explorer) nodeSteps(w *world, o int, f visit) {
	n, who := &w.nodes[o], memberName(o)
	if x.canCut(w, o) {
		x.step(w, f, false, func(n *world) { x.cut(n, o) }, func() string {
			if n.session == 0 {
				return fmt.Sprintf("%s asks %s for a session", who, memberName(int(n.hint)-1))
			}
			return fmt.Sprintf("%s cuts a group and sends it to %s: %s", who, memberName(int(n.hint)-1), x.names(n.queue))
		})
	}
	if n.content != 0 && n.target == 0 && n.hint != 0 {
		x.step(w, f, false, func(n *world) { x.send(n, o) }, func() string {
			return fmt.Sprintf("%s sends the same group to %s", who, memberName(int(n.hint)-1))
		})
	}
	if leader := w.leader(); leader >= 0 && n.hint != uint8(1+leader) && !w.members[o].Down {
		x.step(w, f, false, func(n *world) { x.redirect(n, o) }, func() string {
			return fmt.Sprintf("%s hears that %s leads", who, memberName(leader))
		})
	}
	if n.target == 0 {
		return
	}
	if stuck := x.stuck(w, o); stuck || w.budget.losses > 0 {
		x.step(w, f, !stuck, func(n *world) {
			if !stuck {
				n.budget.losses--
			}
			x.hear(n, o)
			x.failed(n, o, errNoAnswer, false)
		}, func() string { return fmt.Sprintf("%s gets no answer from %s", who, memberName(int(n.target)-1)) })
	}
	if w.budget.expiries > 0 {
		x.step(w, f, true, func(n *world) { n.budget.expiries--; x.failed(n, o, errNoAnswer, true) }, func() string {
			return fmt.Sprintf("%s gets no answer from %s, and gives its group up", who, memberName(int(n.target)-1))
		})
	}
}

// names are the names of the calls in a queue.
func (x *explorer) names(queue [maxCalls]uint8) string {
	text := ""
	for _, c := range queue {
		if c != 0 {
			if text != "" {
				text += ", "
			}
			text += x.scenario.calls[c-1].name
		}
	}
	return text
}

// messageSteps are those of a message on its way.
func (x *explorer) messageSteps(w *world, i int, f visit) {
	msg := w.messages[i]
	t := int(msg.target) - 1
	story := func(how string) func() string {
		return func() string {
			what := "takes it into its log"
			switch {
			case w.members[t].Down:
				what = "is down"
			case !w.members[t].Leads:
				what = "does not lead and refuses it"
			}
			return fmt.Sprintf("%s from %s reaches %s%s, which %s", x.describe(msg.content),
				memberName(int(x.machine.contents[msg.content].origin)-1), memberName(t), how, what)
		}
	}
	if !w.members[t].Leads || w.ready(t) {
		x.step(w, f, false, func(n *world) { n.drop(i); x.deliver(n, msg) }, story(""))
		if w.budget.repeats > 0 && w.members[t].Leads {
			x.step(w, f, true, func(n *world) {
				n.budget.repeats--
				n.drop(i)
				x.deliver(n, msg)
				n.post(message{content: msg.content, target: msg.target}) // Nobody waits for the copy.
			}, story(", and will once more"))
		}
	}
}

// ready reports whether a leader takes an entry: one is in flight at a time.
func (w *world) ready(m int) bool {
	p := &w.members[m]
	for i := p.Applied; i < p.Length; i++ {
		if p.terms[i] == p.Term && p.entries[i] != 0 {
			return false
		}
	}
	return true
}

// describe names an entry.
func (x *explorer) describe(id contentID) string {
	c := &x.machine.contents[id]
	if id == 0 {
		return "the first entry of a term"
	}
	if c.announce > 0 {
		return fmt.Sprintf("the announcement of %s's start %d", memberName(int(c.origin)-1), c.announce)
	}
	queue := [maxCalls]uint8{}
	for i, s := range c.calls {
		queue[i] = s.call
	}
	return fmt.Sprintf("group %d of session %d (acknowledged %d: %s)", c.message.sequence, c.message.session,
		c.message.acknowledged, x.names(queue))
}

// memberSteps are those that a member takes alone.
func (x *explorer) memberSteps(w *world, m int, f visit) {
	p, who := &w.members[m], memberName(m)
	if p.Down {
		x.step(w, f, false, func(n *world) { x.restart(n, m) }, func() string { return who + " starts again" })
		return
	}
	if p.Synced < p.Length {
		x.step(w, f, false, func(n *world) { x.sync(n, m) }, func() string {
			return fmt.Sprintf("%s syncs its log up to %d", who, x.at(p.Length)-1)
		})
	}
	if w.canApply(m) {
		x.step(w, f, false, func(n *world) { x.applyNext(n, m) }, func() string { return x.applyStory(w, m) })
	}
	if w.budget.snapshots > 0 && p.Applied > p.Base {
		x.step(w, f, true, func(n *world) {
			n.budget.snapshots--
			q := &n.members[m]
			x.obeys(m, q.Snapshot(q.Applied, n.committed))
			q.snapshot = q.state
		}, func() string { return fmt.Sprintf("%s takes a snapshot at log index %d", who, x.at(p.Applied)-1) })
	}
	if w.budget.recoveries > 0 {
		x.step(w, f, true, func(n *world) { n.budget.recoveries--; x.recover(n, m) }, func() string {
			return fmt.Sprintf("the others are lost, and the cluster goes on from %s's state at log index %d", who, x.at(p.Applied)-1)
		})
	}
	if w.budget.crashes > 0 {
		x.step(w, f, true, func(n *world) { n.budget.crashes--; x.crash(n, m) }, func() string { return who + " crashes" })
	}
}

// applyNext applies a member's next entry. A leader answers who waits for it.
func (x *explorer) applyNext(w *world, m int) {
	p := &w.members[m]
	entry, term := p.entries[p.Applied], p.terms[p.Applied]
	v := x.machine.apply(p.state, entry)
	p.state = v.after
	p.Applied++
	x.compare(w, m)
	for o := range w.nodes {
		n := &w.nodes[o]
		if n.taken && n.target == 1+uint8(m) && p.Leads && term == p.Term && n.content == entry {
			x.answered(w, o, v)
		}
	}
}

func (x *explorer) applyStory(w *world, m int) string {
	p := &w.members[m]
	entry := p.entries[p.Applied]
	text := fmt.Sprintf("%s applies log index %d: %s", memberName(m), x.at(p.Applied), x.describe(entry))
	if entry == 0 {
		return text
	}
	v := x.machine.apply(p.state, entry)
	for i, s := range x.machine.contents[entry].calls {
		if s.call > 0 && v.gains[i] != 0 {
			c := x.scenario.calls[s.call-1]
			text += fmt.Sprintf("; %s gets %s", c.name, x.machine.gains[v.gains[i]].text(c.kind))
		}
	}
	return text + fmt.Sprintf(" (%s)", v.status)
}

// leaderSteps are those between a member and a leader, and elections.
func (x *explorer) leaderSteps(w *world, m int, f visit) {
	p, leader := &w.members[m], w.leader()
	if p.Down {
		return
	}
	if leader >= 0 && leader != m && p.Synced == p.Length {
		x.replicationSteps(w, m, leader, f)
	}
	if m == leader || leader >= 0 && w.budget.changes == 0 {
		return
	}
	for v := range w.members {
		if v == m || !w.electable(m, v) || x.sameVote(w, m, v) {
			continue
		}
		x.step(w, f, leader >= 0, func(n *world) {
			if leader >= 0 {
				n.budget.changes--
			}
			x.elect(n, m, v)
		}, func() string { return fmt.Sprintf("%s is elected with the vote of %s", memberName(m), memberName(v)) })
	}
}

// sameVote reports whether another vote has the same effect: that of a voter who does not
// believe to lead only matters if there is no other.
func (x *explorer) sameVote(w *world, m, voter int) bool {
	for v := range voter {
		if v != m && w.electable(m, v) && !w.members[v].Leads && !w.members[voter].Leads {
			return true
		}
	}
	return false
}

// replicationSteps are those from a leader to a follower.
func (x *explorer) replicationSteps(w *world, m, leader int, f visit) {
	p, l := &w.members[m], &w.members[leader]
	next := differs(p, l)
	switch {
	case next < l.Base:
		x.step(w, f, false, func(n *world) { x.install(n, m, leader) }, func() string {
			return fmt.Sprintf("%s installs %s's snapshot of log index %d", memberName(m), memberName(leader), x.at(l.Base)-1)
		})
	case next < l.Length:
		x.step(w, f, false, func(n *world) { x.append(n, m, leader) }, func() string {
			return fmt.Sprintf("%s appends log index %d from %s: %s", memberName(m), x.at(next), memberName(leader), x.describe(l.entries[next]))
		})
	case p.Leads:
		x.step(w, f, false, func(n *world) { x.append(n, m, leader) }, func() string {
			return fmt.Sprintf("%s hears that %s leads term %d", memberName(m), memberName(leader), l.Term)
		})
	}
}
