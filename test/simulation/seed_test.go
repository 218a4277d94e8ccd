package simulation

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/test/history"
)

const (
	// identityLimit and stateLimit bound the time after the faults in which every
	// node must give an identity, and all states must become equal. A connection that
	// only one end knows to be lost is noticed after some seconds (seed 735); and to a
	// follower that was away the Raft library sends nothing for as long again as it
	// was away, up to 10 s.
	identityLimit = 20 * time.Second
	stateLimit    = 60 * time.Second
	// answerLimit is how long a call may take that nothing keeps from being answered.
	answerLimit = 5 * time.Second
)

// lastMoments is how long what was killed goes on: none of its waits is longer.
const lastMoments = 30 * time.Second

// result is what came of a seed.
type result struct {
	findings []string
	ops      []history.Op
	faults   int
	virtual  time.Duration
	steps    int // that the model has judged
}

// simulate runs one seed, inside a bubble of synctest.
func simulate(p plan, log io.Writer) result {
	start := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(ctx, p, log)
	for _, s := range w.founders() {
		w.running.Go(s.run)
	}
	n := &nemesis{world: w, random: p.stream(1), client: newClient(w, p.clients)}
	var judging, churning sync.WaitGroup
	judged, stop := context.WithCancel(ctx)
	judging.Go(func() { newLiveness(w).run(judged) })
	if p.scenario == ports {
		judging.Go(func() { newNodesJudge(w).run(judged) })
	}
	if p.churn {
		churning.Go(newChurn(w).run)
	}
	if p.rewinds {
		churning.Go(newChurn(w).rewind)
	}
	if p.repeats {
		churning.Go(func() { w.repeat(p.clients + 70) })
	}
	w.rage(n)
	w.heal()
	churning.Wait()
	w.recover()
	stop()
	judging.Wait()
	w.diverge(n.client)
	cancel()
	w.running.Wait()
	n.client.close()
	// What has not ended when the bubble does is never freed: a few MB for each seed.
	time.Sleep(lastMoments)
	ops := w.history.all()
	return result{
		findings: append(w.failures(), judge(p, ops)...), ops: ops, faults: n.made, virtual: time.Since(start),
		steps: w.tracer.count(),
	}
}

// rage is the time of traffic and faults.
func (w *world) rage(n *nemesis) {
	ctx, cancel := context.WithTimeout(w.ctx, w.plan.length)
	defer cancel()
	var work sync.WaitGroup
	for i := range w.plan.clients {
		work.Go(func() {
			c := newClient(w, i)
			defer c.close()
			c.run(ctx)
		})
	}
	if w.plan.hungry {
		for i, s := range w.founders() {
			work.Go(func() { w.starve(ctx, w.plan.clients+10+i, s) })
		}
	}
	if w.plan.generator {
		work.Go(func() { w.generate(ctx, w.plan.clients+2) })
	}
	if w.plan.window > 0 {
		work.Go(func() { w.limitWindow(ctx, w.plan.clients+3) })
	}
	if w.plan.late {
		work.Go(func() { w.beLate(ctx, w.plan.clients+20) })
	}
	if w.plan.crowd > 0 {
		work.Go(func() { w.crowd(ctx, w.plan.clients+5) })
	}
	if w.plan.series {
		for i := range bookkeepers {
			work.Go(func() { w.keepBooks(ctx, w.plan.clients+40+i) })
		}
	}
	if w.plan.snowflakes {
		for i := range holders {
			work.Go(func() { w.stamp(ctx, w.plan.clients+50+i) })
		}
		work.Go(func() { w.mark(ctx, w.plan.clients+55) })
		work.Go(func() { w.turnClocks(ctx) })
	}
	work.Go(func() { n.play(ctx) })
	work.Wait()
}

// starve takes server-side ids of one node, one after the other, until ctx ends.
func (w *world) starve(ctx context.Context, number int, s *server) {
	c := newClient(w, number)
	defer c.close()
	for ctx.Err() == nil && !s.left.Load() {
		c.takeEtags(ctx, s, "", pick[int64](c.random, 1, 3))
		sleep(ctx, time.Duration(c.random.Int64N(int64(10*time.Millisecond))))
	}
}

// recover is the time after the faults: the cluster must work again, by itself.
func (w *world) recover() {
	c := newClient(w, w.plan.clients+1)
	defer c.close()
	begin := time.Now()
	for _, s := range w.machines() {
		if !c.servesBy(s, begin.Add(identityLimit)) {
			w.found("node %s gave no identity within %v after the faults", s.tag(), identityLimit)
			return
		}
	}
	w.askAll(c)
	if !c.agreeBy(begin.Add(stateLimit)) {
		w.found("the states are not equal %v after the faults", stateLimit)
	}
	if w.plan.series {
		w.auditBooks(c)
	}
}

// askAll makes many calls at a time on all nodes, with nothing in their way: each
// must end by itself.
func (w *world) askAll(c *client) {
	var callers sync.WaitGroup
	for _, s := range w.machines() {
		for i := range 6 {
			name := pick(c.random, "orders", "invoices")
			callers.Go(func() { w.ask(newClient(w, 100+i), s, name) })
		}
	}
	callers.Wait()
}

// ask takes identities of a node, one after the other.
func (w *world) ask(c *client, s *server, name string) {
	defer c.close()
	for range 4 {
		ctx, cancel := context.WithTimeout(w.ctx, answerLimit)
		got := c.onceWithin(ctx, s, history.Op{Kind: history.Next, Name: name, Count: 1}, c.next)
		cancel()
		if got.Code == codes.DeadlineExceeded.String() {
			w.found("node %s did not answer a call within %v, with nothing in its way", s.tag(), answerLimit)
		}
	}
}

// limitWindow has the cluster remember only a few request ids.
func (w *world) limitWindow(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	c.set(ctx, "request-window", w.plan.window)
}

// servesBy says whether a node gives an identity before the deadline.
func (c *client) servesBy(s *server, deadline time.Time) bool {
	ctx, cancel := context.WithDeadline(c.world.ctx, deadline)
	defer cancel()
	for ctx.Err() == nil {
		if c.take(ctx, s) {
			return true
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return false
}

// agreeBy says whether the nodes' states become equal before the deadline.
func (c *client) agreeBy(deadline time.Time) bool {
	ctx, cancel := context.WithDeadline(c.world.ctx, deadline)
	defer cancel()
	for ctx.Err() == nil {
		if c.agree(ctx) {
			return true
		}
		sleep(ctx, 200*time.Millisecond)
	}
	return false
}

func (c *client) agree(ctx context.Context) bool {
	seen := map[string]bool{}
	for _, s := range c.world.machines() {
		index, hash, ok := c.state(ctx, s)
		if !ok {
			return false
		}
		seen[fmt.Sprint(index, hash)] = true
	}
	return len(seen) == 1
}
