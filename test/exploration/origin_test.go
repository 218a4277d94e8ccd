package exploration

import (
	"errors"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// This file is a node's driver around commit.Session and commit.Group: it carries out
// what they decide, as the Gatherer does. One group is in flight at a time.

// Errors of attempts that the log did not end.
var (
	errRefused    = commit.Classify(raft.ErrNotLeader)
	errLostLeader = commit.Classify(raft.ErrLeadershipLost)
	errNoAnswer   = errors.New("no answer in time")
)

// propose has a node take a call in.
func (x *explorer) propose(w *world, i int) {
	c, state := &x.scenario.calls[i], &w.calls[i]
	n := &w.nodes[c.node]
	state.status = open
	switch {
	case c.retry:
		state.since = w.calls[c.follows-1].since
	case c.request > 0:
		state.since = x.machine.place(x.machine.states[w.members[c.node].state].index)
	}
	n.enqueue(uint8(i))
}

// said returns a call's operation as its node proposes it.
func (x *explorer) said(w *world, i uint8) said {
	c := &x.scenario.calls[i]
	s := said{call: 1 + i, since: w.calls[i].since}
	if c.follows > 0 && !c.retry {
		s.about = w.calls[c.follows-1].got
	}
	return s
}

// canCut reports whether a node that knows a leader has operations for a group.
func (x *explorer) canCut(w *world, o int) bool {
	n := &w.nodes[o]
	return !w.members[o].Down && n.content == 0 && n.queue[0] != 0 && n.hint != 0
}

// cut makes a group of all that waits, and sends it; without a session the node opens
// one first.
func (x *explorer) cut(w *world, o int) {
	n := &w.nodes[o]
	if n.session == 0 {
		n.content = x.machine.content(parts{origin: 1 + uint8(o), announce: n.starts, recovered: w.recovered})
		n.group = x.groups.number(commit.Group{})
		x.send(w, o)
		return
	}
	session := x.sessions.value(n.session)
	group := session.Cut()
	n.session, n.group = x.sessions.number(session), x.groups.number(group)
	message := group.Message(nil, nil)
	p := parts{
		message: groupNumbers{message.Session, message.Sequence, message.Acknowledged}, origin: 1 + uint8(o), recovered: w.recovered,
	}
	for i := 0; n.queue[0] != 0; i++ {
		call := n.queue[0] - 1
		p.calls[i] = x.said(w, call)
		n.dequeue(call)
	}
	n.calls, n.content, n.attempt = p.calls, x.machine.content(p), 0
	x.send(w, o)
}

// opening reports whether a node waits for a session.
func (x *explorer) opening(n *node) bool {
	return n.content != 0 && x.machine.contents[n.content].announce > 0
}

// send begins an attempt, if there is reason for one.
func (x *explorer) send(w *world, o int) {
	n := &w.nodes[o]
	if x.opening(n) {
		n.announced++
		n.target = n.hint
		w.post(message{content: n.content, target: n.target, attempt: n.announced})
		return
	}
	group := x.groups.value(n.group)
	switch group.Begin(n.hint == 0, x.wanted(w, n)) {
	case commit.Send:
		n.attempt++
		n.target = n.hint
		w.post(message{content: n.content, target: n.target, attempt: n.attempt})
	case commit.PutBack:
		x.putBack(w, o)
	default:
	}
}

// wanted reports whether a caller waits for the group.
func (x *explorer) wanted(w *world, n *node) bool {
	for _, s := range n.calls {
		if s.call > 0 && w.calls[s.call-1].status == open {
			return true
		}
	}
	return false
}

// current reports whether a message is that of the attempt in flight.
func (x *explorer) current(n *node, msg message) bool {
	attempt := n.attempt
	if x.opening(n) {
		attempt = n.announced
	}
	return n.content == msg.content && n.target == msg.target && attempt == msg.attempt
}

// stuck reports whether the attempt in flight can no longer be answered.
func (x *explorer) stuck(w *world, o int) bool {
	n := &w.nodes[o]
	for _, msg := range w.messages {
		if msg.content != 0 && x.current(n, msg) {
			return false
		}
	}
	return !n.taken
}

// originOf returns who waits for the answer to an attempt; -1 if nobody does.
func (x *explorer) originOf(w *world, msg message) int {
	for o := range w.nodes {
		if n := &w.nodes[o]; n.target != 0 && x.current(n, msg) {
			return o
		}
	}
	return -1
}

// deliver has a message arrive.
func (x *explorer) deliver(w *world, msg message) {
	t, o := int(msg.target)-1, x.originOf(w, msg)
	p := &w.members[t]
	switch {
	case p.Down:
	case p.Leads:
		if o >= 0 {
			w.nodes[o].taken = true
		}
		x.write(w, t, p.Term, msg.content)
	case o >= 0:
		x.hear(w, o)
		x.failed(w, o, errRefused, false)
	}
}

// hear tells a node who leads.
func (x *explorer) hear(w *world, o int) { w.nodes[o].hint = uint8(1 + w.leader()) }

// redirect tells a node that another member leads: an attempt elsewhere ends.
func (x *explorer) redirect(w *world, o int) {
	x.hear(w, o)
	if n := &w.nodes[o]; n.target != 0 && n.target != n.hint {
		x.failed(w, o, errNoAnswer, false)
	}
}

// leadershipLost ends the attempts that a member has in its log.
func (x *explorer) leadershipLost(w *world, m int) {
	for o := range w.nodes {
		if n := &w.nodes[o]; n.target == 1+uint8(m) && n.taken {
			x.failed(w, o, errLostLeader, false)
		}
	}
}

// failed ends an attempt without an answer. late says that the group is given up.
func (x *explorer) failed(w *world, o int, err error, late bool) {
	n := &w.nodes[o]
	n.target, n.taken = 0, false
	group := x.groups.value(n.group)
	v := group.Failed(err, late)
	n.group = x.groups.number(group)
	if x.opening(n) {
		return // It is sent again, in any case.
	}
	x.carryOut(w, o, v, applyValue{})
}

// answered ends an attempt with the state machine's answer.
func (x *explorer) answered(w *world, o int, a applyValue) {
	n := &w.nodes[o]
	n.target, n.taken = 0, false
	if x.opening(n) {
		n.session = x.sessions.number(commit.NewSession(x.machine.gains[a.gains[0]].index))
		n.content, n.group = 0, 0
		return
	}
	group, count := x.groups.value(n.group), 0
	for _, s := range n.calls {
		if s.call > 0 {
			count++
		}
	}
	result := raftlog.GroupResult{Status: a.status}
	if a.status == raftlog.Applied {
		result.Results = make([][]byte, count)
	}
	x.carryOut(w, o, group.Answered(result, count), a)
}

// carryOut does what an attempt's end means.
func (x *explorer) carryOut(w *world, o int, v commit.Verdict, a applyValue) {
	n := &w.nodes[o]
	if v.Next == commit.Send {
		return
	}
	if v.Next == commit.PutBack {
		x.putBack(w, o)
	} else {
		for i, s := range n.calls {
			if s.call > 0 && w.calls[s.call-1].status == open {
				x.judgeEffect(s.call-1, v.Err, a.after, a.gains[i])
				x.end(w, s.call-1, v.Err, a.gains[i])
			}
		}
		x.settle(w, o)
	}
	if v.SessionEnded {
		n.session = 0
	}
	for v.Late && n.queue[0] != 0 {
		call := n.queue[0] - 1
		n.dequeue(call)
		x.end(w, call, outcome.NewNotApplied(outcome.NoQuorum, nil), 0)
	}
}

// end answers a call.
func (x *explorer) end(w *world, call uint8, err error, got gainID) {
	c := &w.calls[call]
	switch outcome.Of(err) {
	case outcome.Applied:
		c.status, c.got = answered, got
	case outcome.NotApplied:
		c.status = notApplied
	default:
		c.status = unknown
	}
}

// putBack returns the operations of a group to the queue.
func (x *explorer) putBack(w *world, o int) {
	n := &w.nodes[o]
	for i := maxCalls - 1; i >= 0; i-- {
		if s := n.calls[i]; s.call > 0 && w.calls[s.call-1].status == open {
			n.enqueueFirst(s.call - 1)
		}
	}
	x.settle(w, o)
}

// settle ends a group.
func (x *explorer) settle(w *world, o int) {
	n := &w.nodes[o]
	n.content, n.group, n.calls, n.attempt, n.target, n.taken = 0, 0, [maxCalls]said{}, 0, 0, false
}

// expire has a caller wait no longer.
func (x *explorer) expire(w *world, call uint8) {
	n := &w.nodes[x.scenario.calls[call].node]
	inGroup := !n.dequeue(call)
	x.end(w, call, commit.Abandoned(inGroup, nil), 0)
}

// callersLost ends the calls of a node whose process ends: their callers know nothing.
func (x *explorer) callersLost(w *world, m int) {
	for i, c := range x.scenario.calls {
		if int(c.node) == m && w.calls[i].status == open {
			w.calls[i].status = unknown
		}
	}
	w.nodes[m] = node{starts: w.nodes[m].starts + 1, announced: w.nodes[m].announced}
}

// numbers number values, so that a world holds one byte of each. 0 is the zero value.
type numbers[V comparable] struct {
	values []V
	known  map[V]uint8
}

func newNumbers[V comparable]() numbers[V] {
	var zero V
	return numbers[V]{values: []V{zero}, known: map[V]uint8{zero: 0}}
}

func (n *numbers[V]) value(i uint8) V { return n.values[i] }

func (n *numbers[V]) number(v V) uint8 {
	i, known := n.known[v]
	if !known {
		if len(n.values) > 1<<8-1 {
			panic("too many values for their numbers")
		}
		i = uint8(len(n.values))
		n.values, n.known[v] = append(n.values, v), i
	}
	return i
}
