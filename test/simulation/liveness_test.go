package simulation

import (
	"context"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/test/history"
)

// speeds are those of disks for which liveness is judged: a sync takes so long at most.
var speeds = [...]time.Duration{250 * time.Millisecond}

const (
	// syncsToAnIdentity is how many syncs, one after another, may pass until a majority that
	// works has a leader, and a caller an identity: 15 s with syncs of 250 ms. Votes are split by
	// chance: with four voters, three of them up, one wait in fifty passes forty syncs.
	syncsToAnIdentity = 60
	// syncsBesideSlow are as many beside voters whose disks are slower: those campaign too, and
	// take votes. With two of five at 700 ms one wait in seventy passes seventy (seed 103267).
	syncsBesideSlow = 100
	// looks is how often the judge looks.
	looks = 250 * time.Millisecond
	// slowTravel is how long bytes travel on a link that does not count as connected.
	slowTravel = 100 * time.Millisecond
)

// liveness judges that there is a leader whenever there can be one: from the moment that a
// majority is up, connected, and its disks are quick enough, some node gives an identity
// within syncsToAnIdentity syncs, or syncsBesideSlow, and again within as many. The plan's
// true state of machines, links and disks says since when, and not what nodes think of each
// other.
type liveness struct {
	world  *world
	probes map[*server]*probe
	asking sync.WaitGroup
}

// probe asks a machine's node where callers may not.
type probe struct {
	client *client
	busy   atomic.Bool
}

func newLiveness(w *world) *liveness { return &liveness{world: w, probes: map[*server]*probe{}} }

// majorities are the smallest of the members. One that is removed is no member from when that
// is asked for, and one that joins is from then: nothing else happens before it votes.
func (l *liveness) majorities() (all [][]*server) {
	if l.world.plan.churn || l.world.plan.rewinds {
		return nil // The voters, and so the majorities, change at no certain moment.
	}
	nodes := l.world.machines()
	for set := range uint(1) << len(nodes) {
		if bits.OnesCount(set) != len(nodes)/2+1 {
			continue
		}
		var m []*server
		for i, s := range nodes {
			if set>>i&1 == 1 {
				m = append(m, s)
			}
		}
		all = append(all, m)
	}
	return all
}

// run judges until ctx ends, or once something is wrong.
func (l *liveness) run(ctx context.Context) {
	defer func() {
		l.asking.Wait()
		for _, p := range l.probes {
			p.client.close()
		}
	}()
	for ctx.Err() == nil && l.look() {
		sleep(ctx, looks)
	}
}

// look judges the present, and says whether nothing is wrong. The time until the first
// identity is not judged: to form a cluster takes all its nodes.
func (l *liveness) look() bool {
	given := l.world.history.lastGiven()
	for _, m := range l.majorities() {
		for tier, speed := range speeds {
			since, good := goodSince(m, tier)
			if !good || given.IsZero() {
				continue
			}
			if given.After(since) {
				since = given
			}
			limit := l.syncs(tier, since) * speed
			switch dry := time.Since(since); {
			case dry > limit:
				l.world.found("no identity for %v, though %s were up and connected, with syncs of %v at most", dry, hosts(m), speed)
				return false
			case dry > limit/4:
				l.ask(m)
			}
		}
	}
	return true
}

// syncs is how many may pass, for those that have been good since then.
func (l *liveness) syncs(tier int, since time.Time) time.Duration {
	for _, s := range l.world.machines() {
		if s.disk.slowUntil(tier).After(since) {
			return syncsBesideSlow
		}
	}
	return syncsToAnIdentity
}

// ask asks machines' nodes for an identity, each but those that have not answered yet.
func (l *liveness) ask(machines []*server) {
	for _, s := range machines {
		p := l.probes[s]
		if p == nil {
			p = &probe{client: newClient(l.world, l.world.plan.clients+60+len(l.probes))}
			l.probes[s] = p
		}
		if !p.busy.CompareAndSwap(false, true) {
			continue
		}
		l.asking.Go(func() {
			defer p.busy.Store(false)
			ctx, cancel := context.WithTimeout(l.world.ctx, answerLimit)
			defer cancel()
			p.client.onceWithin(ctx, s, history.Op{Kind: history.Next, Name: "orders", Count: 1}, p.client.next)
		})
	}
}

func hosts(machines []*server) string {
	var all []string
	for _, s := range machines {
		all = append(all, s.host)
	}
	return strings.Join(all, ", ")
}

// goodSince is since when machines are up, connected, and have disks of a speed; false if
// they are not.
func goodSince(machines []*server, tier int) (since time.Time, good bool) {
	later := func(t time.Time) {
		if t.After(since) {
			since = t
		}
	}
	for i, s := range machines {
		up, is := s.upSince()
		if !is {
			return since, false
		}
		later(up)
		later(s.disk.slowUntil(tier))
		for _, other := range machines[:i] {
			connected, are := s.world.network.connectedSince(s.host, other.host)
			if !are {
				return since, false
			}
			later(connected)
		}
	}
	return since, !since.After(time.Now())
}

// upSince is since when the machine's node runs; false if it does not.
func (s *server) upSince() (time.Time, bool) {
	p := s.current()
	if p == nil || s.empty.Load() {
		return time.Time{}, false
	}
	select {
	case <-p.gone:
		return time.Time{}, false
	case <-p.stopping:
		return time.Time{}, false
	default:
		return p.began, true
	}
}

// slowUntil is until when the disk is slower than a speed, or was last.
func (d *disk) slowUntil(tier int) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow[tier]
}

// takes notes how long a sync takes from now on. The caller holds mu.
func (d *disk) takes(sync time.Duration) {
	for tier, speed := range speeds {
		if until := time.Now().Add(sync); sync > speed && until.After(d.slow[tier]) {
			d.slow[tier] = until
		}
	}
}

// connectedSince is since when all that one of two hosts sends reaches the other in time;
// false if it does not.
func (n *network) connectedSince(a, b string) (since time.Time, are bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := edge{a, b}, edge{b, a}
	if n.cut[there] || n.cut[back] {
		return since, false
	}
	for w := range n.closed {
		if w.edge == there || w.edge == back {
			return since, false
		}
	}
	for _, e := range []edge{there, back, {from: a}, {from: b}} {
		if t := n.troubled[e]; t.After(since) {
			since = t
		}
	}
	return since, true
}

// trouble notes that what is sent in a direction is late, or was lost, until then. No
// receiver is all of them. The caller holds mu.
func (n *network) trouble(e edge, until time.Time) {
	if until.After(n.troubled[e]) {
		n.troubled[e] = until
	}
}
