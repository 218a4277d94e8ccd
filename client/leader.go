package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

// look is one round of GetStatus calls to find the leader.
type look struct {
	began time.Time
	// heard is closed when the first node has answered, done at the end.
	heard, done chan struct{}
	// answered has a channel for each node asked, closed when that node has answered.
	answered map[*node]chan struct{}
	// any is closed when the first of them has answered, and first is that time from then on.
	any   chan struct{}
	first time.Time
}

// look returns the newest look for the leader. It starts another if none is in progress, and the
// newest is older than age or has not asked also, a node that may be no endpoint; nil for none.
func (r *router) look(age time.Duration, also *node) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookLocked(age, also)
}

func (r *router) lookLocked(age time.Duration, also *node) *look {
	last := r.newestLook
	_, asked := last.answered[also]
	if r.closed || !closed(last.done) || (asked || also == nil) && time.Since(last.began) <= age {
		return last
	}
	l := &look{
		began: time.Now(), heard: make(chan struct{}), done: make(chan struct{}), any: make(chan struct{}),
		answered: make(map[*node]chan struct{}),
	}
	for _, n := range append([]*node{r.leader, also}, r.given...) {
		if n != nil {
			l.answered[n] = make(chan struct{})
		}
	}
	r.newestLook = l
	r.tasks.Go(func() {
		r.find(l)
		close(l.done)
	})
	return l
}

// view is a node's status.
type view struct {
	node   *node
	status *idnodev1.GetStatusResponse
}

// find asks all endpoints, and the last leader, in parallel for the leader, and settles on the
// first node that states itself that it leads.
func (r *router) find(l *look) {
	views := make(chan view, len(l.answered))
	first := sync.OnceFunc(func() {
		l.first = time.Now()
		close(l.any)
	})
	for n, answered := range l.answered {
		r.tasks.Go(func() {
			s, refused := r.ask(n)
			if s != nil || refused {
				close(answered)
				first()
			}
			views <- view{n, s}
		})
	}
	seen := r.hear(l, views)
	if len(seen) == 0 {
		seen = r.askLearned()
	}
	if b := r.decide(); b == nil || b.err != nil {
		seen = nil
	}
	var leader *node
	if i := slices.IndexFunc(seen, func(v view) bool { return leads(v.status) }); i >= 0 {
		leader = seen[i].node
		r.learnMembers(leader, seen[i].status)
	} else {
		leader = r.reach(l, seen)
	}
	r.settle(leader, l.began)
	if leader != nil {
		r.tasks.Go(func() { r.leaveSilent(l, leader) })
	}
}

// othersWithin is how long a look waits for the other endpoints after the first answer, while the
// client is not sure of its cluster.
const othersWithin = 300 * time.Millisecond

// hear returns the answers of a look up to the leader's. A client that is not sure of its cluster
// hears all endpoints, because any cluster of one node says that it leads.
func (r *router) hear(l *look, views <-chan view) (seen []view) {
	heard := sync.OnceFunc(func() { close(l.heard) })
	defer heard()
	b := r.belongs.Load()
	sure := b != nil && b.sure
	var over <-chan time.Time
	for range l.answered {
		select {
		case v := <-views:
			if v.status == nil {
				continue
			}
			seen = append(seen, v)
			heard()
			switch {
			case sure && leads(v.status):
				return seen
			case !sure && over == nil:
				over = time.After(othersWithin)
			}
		case <-over:
			return seen
		}
	}
	return seen
}

// ask returns a node's status; nil if it does not answer in time, or is of another cluster, or
// refuses the call, as an overloaded node does.
func (r *router) ask(n *node) (s *idnodev1.GetStatusResponse, refused bool) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, lookTimeout)
	defer cancel()
	if n.ready(ctx) != nil {
		r.tried(began, false)
		return nil, false
	}
	s, err := r.status(ctx, n)
	refused = err != nil && errorOf(errors.Unwrap(err)).Reason != ""
	r.tried(began, err == nil || refused)
	if err != nil {
		return nil, refused
	}
	if b := r.belongs.Load(); b == nil || b.err == nil {
		r.sawApplied(s.GetAppliedIndex())
	}
	return s, false
}

// leads reports whether a node states that it leads.
func leads(s *idnodev1.GetStatusResponse) bool {
	return s.GetHasQuorum() && s.GetLeaderTag() != "" && s.GetLeaderTag() == s.GetSelf().GetTag()
}

// reach tries the leader's address in the cluster, by the status with the highest term that has
// one. The address may mean nothing outside of the cluster, or belong to another node, so the node
// there must state itself that it leads. One that the look has asked already has had its time.
func (r *router) reach(l *look, seen []view) *node {
	seen = slices.DeleteFunc(seen, func(v view) bool { return leaderAddress(v.status) == "" })
	if len(seen) == 0 {
		return nil
	}
	newest := slices.MaxFunc(seen, func(a, b view) int { return cmp.Compare(a.status.GetTerm(), b.status.GetTerm()) })
	address := leaderAddress(newest.status)
	for n := range l.answered {
		if n.address == address {
			return nil
		}
	}
	if n := r.learn(address); n != nil {
		if s, _ := r.ask(n); leads(s) {
			r.learnMembers(n, s)
			return n
		}
	}
	return nil
}

// leaderAddress returns the leader's address in a status; "" if there is none.
func leaderAddress(s *idnodev1.GetStatusResponse) string {
	for _, m := range s.GetMembers() {
		if m.GetTag() == s.GetLeaderTag() && s.GetLeaderTag() != "" {
			return m.GetGrpcAddress()
		}
	}
	return ""
}

// maxLearned bounds the connections to nodes that are no endpoints.
const maxLearned = 16

// learn returns the node at an address from the cluster; nil if there can be none.
func (r *router) learn(address string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.learned[address]; n != nil {
		return n
	}
	if r.closed || len(r.learned) >= maxLearned {
		return nil
	}
	n, err := r.newNode(address)
	if err != nil {
		return nil
	}
	r.learned[address] = n
	return n
}

// settle ends a look and makes n the leader; nil means that the leader is unknown.
func (r *router) settle(n *node, began time.Time) {
	looked := Event{Kind: EventLook, Duration: time.Since(began)}
	if n != nil {
		n.trust()
		looked.Node = n.address
	}
	r.mu.Lock()
	if n != nil && !slices.Contains(r.given, n) && r.learned[n.address] != n {
		n = nil // SetEndpoints has taken it out meanwhile.
	}
	r.leader = n
	changed := n != nil && n != r.lastLeader
	if changed {
		r.lastLeader = n
	}
	r.mu.Unlock()
	r.cfg.Logger.Debug("idnode: a look for the leader has ended", "leader", looked.Node, "took", looked.Duration)
	r.cfg.tell(looked)
	if changed {
		r.cfg.Logger.Info("idnode: calls go to another leader", "node", n.address)
		r.cfg.tell(Event{Kind: EventLeader, Node: n.address})
	}
}
