package commit

import (
	"context"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// reach is the Gatherer's knowledge of the leader and the quorum. The Gatherer's lock
// guards it.
//
// Invariant: expired implies lost, and lost implies that the timer runs or has ended in
// expired.
type reach struct {
	// leader is the leader's Raft server id; empty if unknown.
	leader string
	quorum bool
	// lost means that there is no quorum or no leader; expired that this has lasted for
	// LeaderWait.
	lost    bool
	expired bool
	// changed is closed at every change.
	changed chan struct{}
	// newest is the newest known leader. led ends when another leads, by endLed.
	newest string
	led    context.Context
	endLed context.CancelFunc

	wait  time.Duration
	timer *time.Timer
	// outage counts the losses, so that a late timer of an earlier loss is recognised.
	outage  uint64
	elapsed func(outage uint64)
}

func (r *reach) init(wait time.Duration, elapsed func(outage uint64)) {
	r.changed = make(chan struct{})
	r.wait, r.elapsed = wait, elapsed
	r.update()
}

// update recomputes lost, starts or stops the timer, and wakes those that wait.
func (r *reach) update() {
	lost := !r.quorum || r.leader == ""
	switch {
	case lost && !r.lost:
		r.outage++
		outage := r.outage
		r.timer = time.AfterFunc(r.wait, func() { r.elapsed(outage) })
	case !lost && r.lost:
		r.timer.Stop()
		r.expired = false
	}
	r.lost = lost
	r.tell()
}

func (r *reach) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// follow ends the attempts at the leader before this one.
func (r *reach) follow(ctx context.Context, leader string) {
	if r.endLed != nil {
		r.endLed()
	}
	r.newest = leader
	r.led, r.endLed = context.WithCancel(ctx)
}

func (r *reach) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// SetLeader tells the Gatherer the leader's Raft server id; empty if unknown. It is a hint:
// that node may no longer lead. It ends attempts at other nodes, because the old leader may
// never answer. An unknown leader ends no attempt, because the same leader often returns.
func (g *Gatherer) SetLeader(leader string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if leader == g.reach.leader {
		return
	}
	g.reach.leader = leader
	if g.stopped {
		return
	}
	g.reach.update()
	if leader != "" && leader != g.reach.newest {
		g.reach.follow(g.halt, leader)
	}
	g.work.Signal()
}

// Leader returns the last argument of SetLeader.
func (g *Gatherer) Leader() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reach.leader
}

// SetQuorum tells the Gatherer whether a quorum can be reached. When the quorum is lost,
// operations in flight fail with Unknown(NoQuorum) at once; queued operations fail with
// NotApplied(NoQuorum) after LeaderWait, and new operations from then on at once, until
// there are a quorum and a leader again.
func (g *Gatherer) SetQuorum(present bool) {
	g.mu.Lock()
	if g.stopped || g.reach.quorum == present {
		g.mu.Unlock()
		return
	}
	g.reach.quorum = present
	g.reach.update()
	var inFlight []*waiter
	if !present {
		inFlight = g.sender.abandon()
	}
	g.work.Signal()
	g.mu.Unlock()
	g.fail(inFlight, outcome.NewUnknown(outcome.NoQuorum, nil))
}

// unreachable is called when an outage has lasted for LeaderWait.
func (g *Gatherer) unreachable(outage uint64) {
	g.mu.Lock()
	if g.stopped || !g.reach.lost || g.reach.outage != outage {
		g.mu.Unlock()
		return
	}
	g.reach.expired = true
	g.reach.tell()
	waiting, inFlight := g.waiting.drain(), g.sender.abandon()
	g.work.Signal()
	g.mu.Unlock()
	g.fail(waiting, outcome.NewNotApplied(outcome.NoQuorum, nil))
	g.fail(inFlight, outcome.NewUnknown(outcome.NoQuorum, nil))
}

// WaitLeader waits for a leader with a quorum and returns its Raft server id. Like Propose
// it waits until ctx ends, or until there was no such leader for LeaderWait. Its errors are
// *outcome.Error with NotApplied.
func (g *Gatherer) WaitLeader(ctx context.Context) (string, error) {
	known, err := g.waitLeader(ctx)
	return known.leader, err
}

func (g *Gatherer) waitLeader(ctx context.Context) (reach, error) {
	for {
		known, err := g.reachNow()
		if err != nil {
			return reach{}, err
		}
		if err := ctx.Err(); err != nil {
			return reach{}, outcome.NewNotApplied(outcome.Deadline, err)
		}
		if !known.lost {
			return known, nil
		}
		select {
		case <-known.changed:
		case <-ctx.Done():
		case <-g.halt.Done():
		}
	}
}

// reachNow fails if a wait for a leader is over.
func (g *Gatherer) reachNow() (reach, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.stopped:
		return reach{}, outcome.NewNotApplied(outcome.Stopping, nil)
	case g.reach.expired:
		return reach{}, outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	return g.reach, nil
}
