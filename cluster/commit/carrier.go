package commit

import (
	"context"
	"time"

	"github.com/idnode/idnode/internal/mutant"
	"github.com/idnode/idnode/raftlog"
)

// carrier is one of the Gatherer's loops: it cuts a group, carries it to the
// leader until the group is settled, and only then cuts the next. There are as
// many carriers as groups may be under way.
type carrier struct {
	g *Gatherer

	// The Gatherer's lock guards these.

	// waiters are the callers of the group in hand. It is empty if there is no
	// group, or if the group was given up over the carrier's head.
	waiters []*waiter
	// target is the leader that the attempt under way is made at, else empty.
	target  string
	attempt attempt

	// These are the carrier's own.

	operations [][]byte
	callers    []context.Context
	retry      retry
	// spare is the room for the next group's waiters.
	spare []*waiter
}

// group is what a carrier has in hand.
type group struct {
	session      *session
	sequence     uint64
	acknowledged uint64
	data         []byte
	size         int
	started      time.Time
	// waited is how long the oldest operation has waited at least.
	waited time.Duration
	// attempts counts the sendings; leader is where the last one went.
	attempts int
	leader   string
	// tainted says that an attempt ended without an answer: the group may be in
	// a log.
	tainted bool
	// trail follows the group, or is nil; err is what the newest attempt ended with.
	trail Trail
	err   error
}

// run is the loop.
func (c *carrier) run() {
	for {
		gr, ok := c.next()
		if !ok {
			return
		}
		c.carry(&gr)
		endTrail(gr.trail, gr.err)
	}
}

// next waits for operations and a way to the leader, and cuts a group. It
// returns false when the Gatherer ends.
func (c *carrier) next() (group, bool) {
	g := c.g
	g.mu.Lock()
	for {
		switch {
		case g.closing && g.waiting.length == 0:
			g.work.Broadcast()
			g.mu.Unlock()
			return group{}, false
		case g.waiting.length == 0:
			c.retry = retry{}
			c.idle()
		case g.reach.lost, g.opening, !g.gathered(), g.session != nil && g.session.full():
			c.idle()
		case g.session == nil:
			c.open()
		default:
			gr := c.cut()
			g.mu.Unlock()
			if g.cfg.Events.Cut != nil {
				g.cfg.Events.Cut(len(c.operations), gr.waited)
			}
			c.encode(&gr)
			c.follow(&gr)
			return gr, true
		}
	}
}

// idle waits until something has changed.
func (c *carrier) idle() {
	c.g.idle++
	c.g.work.Wait()
	c.g.idle--
}

// cut takes the oldest operations. The bytes are collected under the lock,
// because a waiter that is answered over the carrier's head is used again.
func (c *carrier) cut() group {
	g := c.g
	g.linger.want = 0
	waiters, size := g.waiting.take(c.spare[:0], g.cfg.MaxOperations, g.cfg.MaxGroupBytes)
	if mutant.On(mutant.OperationLost) && len(waiters) > 1 {
		waiters = waiters[:len(waiters)-1]
	}
	c.waiters, c.spare = waiters, waiters
	c.operations = c.operations[:0]
	for _, w := range waiters {
		c.operations = append(c.operations, w.operation)
	}
	if g.cfg.Events.Follow != nil {
		c.callers = appendCallers(c.callers[:0], waiters)
	}
	sequence, now := g.session.take(), time.Now()
	waited := now.Sub(g.waiting.since)
	g.waiting.since = now
	return group{
		session:      g.session,
		sequence:     sequence,
		acknowledged: g.session.acknowledged(),
		size:         size,
		started:      now,
		waited:       waited,
	}
}

func appendCallers(callers []context.Context, waiters []*waiter) []context.Context {
	for _, w := range waiters {
		callers = append(callers, w.caller)
	}
	return callers
}

// follow begins the group's trail, if groups are followed.
func (c *carrier) follow(gr *group) {
	if follow := c.g.cfg.Events.Follow; follow != nil {
		gr.trail = follow(c.callers, len(c.callers))
		clear(c.callers)
	}
}

// encode writes the group. Its bytes are new each time, because a sender may
// keep them beyond the answer.
func (c *carrier) encode(gr *group) {
	message := raftlog.Group{
		Origin:       gr.session.origin,
		Session:      gr.session.number,
		Sequence:     gr.sequence,
		Acknowledged: gr.acknowledged,
		Operations:   c.operations,
	}
	gr.data = raftlog.AppendGroup(make([]byte, 0, raftlog.SizeGroup(message)), message)
	clear(c.operations)
}

// carry sends the group until it is settled. Invariant: each return has settled
// the group's sequence number and left no waiter behind.
func (c *carrier) carry(gr *group) {
	for {
		ctx, leader, ok := c.begin(gr)
		if !ok {
			return
		}
		result, err := c.g.cfg.Sender.Send(onto(ctx, gr.trail), leader, gr.data)
		c.end()
		gr.err = err
		if err == nil {
			c.answered(gr, result)
			return
		}
		if !c.again(gr, err) {
			return
		}
	}
}

// begin opens an attempt. It returns false, with the group settled, if nobody
// waits for the group any more. Without a leader it waits, if the group may be
// in a log; else the operations wait better in the queue.
func (c *carrier) begin(gr *group) (context.Context, string, bool) {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.reach.lost && gr.tainted && c.wanted() {
		changed := g.reach.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-g.halt.Done():
		}
		g.mu.Lock()
	}
	if g.reach.lost || !c.wanted() {
		c.putBack(gr)
		return nil, "", false
	}
	gr.attempts++
	gr.leader, c.target = g.reach.leader, g.reach.leader
	return c.attempt.renew(g.halt, g.cfg.SendTimeout), c.target, true
}

// end closes the attempt.
func (c *carrier) end() {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	c.target = ""
}

// redirect ends an attempt that waits for another node than the leader. The
// caller holds the lock.
func (c *carrier) redirect(leader string) {
	if c.target != "" && c.target != leader {
		c.attempt.cancel()
	}
}

// wanted says whether a caller still waits for the group. The caller holds the
// lock.
func (c *carrier) wanted() bool {
	for _, w := range c.waiters {
		if w.place != left {
			return true
		}
	}
	return false
}

// drop forgets callers that have left. The caller holds the lock.
func (c *carrier) drop() {
	clear(c.waiters)
	c.waiters = c.waiters[:0]
}

// abandonAll ends all attempts and returns the callers of all groups under way;
// it is up to the caller, who holds the lock, to answer them afterwards.
func (g *Gatherer) abandonAll() []*waiter {
	var all []*waiter
	for _, c := range g.carriers {
		all = append(all, c.waiters...)
		c.drop()
		c.attempt.cancel()
	}
	return all
}
