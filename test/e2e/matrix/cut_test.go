package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// inFlight bounds how long a call that was in flight when its node was cut off
// may take to end.
const inFlight = 600 * time.Millisecond

// TestF06LeaderCutOff cuts the leader off in both directions: it refuses all that
// needs a quorum, at once and for certain, and still gives server-side ids; the
// others go on. Then no node reaches another, and no caller is given anything.
func TestF06LeaderCutOff(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 20, 200) {
		leader := r.c.Leader(t)
		r.traffic.Thick(t)
		w := r.Watch(leader)
		r.c.Isolate(leader)
		r.failsOver(t, r.c.Others(leader)[i%2])
		r.traffic.Thick(t)
		if i%4 == 0 { // it takes the 2 s that calls wait for a leader
			r.refuses(t, w)
		}
		if late := w.Seen().InFlight; late > within(inFlight) {
			t.Errorf("a call in flight on the leader ended %s after it was cut off, want at most %s", late, within(inFlight))
		}
		r.c.Heal()
		r.c.WaitReady(t)
	}
	r.inTime(t, 700*time.Millisecond, 1200*time.Millisecond, 2*time.Second)

	follower := r.c.Others(r.c.Leader(t))[0]
	w := r.Watch(follower)
	r.c.Isolate(follower)
	r.refuses(t, w)
	r.traffic.Thick(t)
	r.c.Heal()
	r.c.WaitReady(t)

	var watches []*harness.Watch
	r.c.CutAll()
	for _, n := range r.c.Nodes {
		watches = append(watches, r.Watch(n))
	}
	for _, w := range watches {
		r.refuses(t, w)
	}
	r.c.Heal()
	r.ends(t)
}

// TestF09LargePacketsLost makes large messages of the leader vanish, while heartbeats
// arrive: another node leads soon, and the one behind the link does not come back.
func TestF09LargePacketsLost(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	leader := r.c.Leader(t)
	r.traffic.Thick(t)
	r.c.Narrow(leader)
	awaitOther(t, r.c, leader)
	other := r.c.Others(leader)[0]
	for range 3 {
		r.traffic.Probe(t, other)
		r.traffic.Thick(t)
	}
	if r.c.Leader(t) == leader {
		t.Errorf("node %s, whose large messages vanish, leads again", leader.Tag)
	}
	r.c.Heal()
	r.ends(t)
}

// refuses waits until a node that was cut off has refused many calls, and checks
// that it gave server-side ids meanwhile. That it gave nothing else, and how it
// refused, the history tells.
func (r *row) refuses(t *testing.T, w *harness.Watch) {
	t.Helper()
	harness.Eventually(t, 15*time.Second, "refusals", func(context.Context) error {
		if s := w.Seen(); s.Refused < 100 || s.Etags < 20 {
			return fmt.Errorf("%d calls refused, %d given server-side ids", s.Refused, s.Etags)
		}
		return nil
	})
}

// TestF07CutOneWay cuts single directions: all that the leader sends, all that it
// is sent, the link to one follower, and one direction of each pair. Where a
// majority reaches each other, service goes on.
func TestF07CutOneWay(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for range r.cycles(t, 1, 50) {
		for _, cut := range []struct {
			what string
			// goesOn says that a majority reaches each other.
			goesOn bool
			cut    func(leader, a, b *harness.Node)
		}{
			{"out of the leader", true, func(leader, a, b *harness.Node) {
				r.c.CutOneWay(leader, a)
				r.c.CutOneWay(leader, b)
			}},
			{"into the leader", true, func(leader, a, b *harness.Node) {
				r.c.CutOneWay(a, leader)
				r.c.CutOneWay(b, leader)
			}},
			{"between the leader and a follower", true, func(leader, a, _ *harness.Node) { r.c.CutBetween(leader, a) }},
			{"in a ring", false, func(leader, a, b *harness.Node) {
				r.c.CutOneWay(leader, a)
				r.c.CutOneWay(a, b)
				r.c.CutOneWay(b, leader)
			}},
		} {
			leader := r.c.Leader(t)
			a, b := r.c.Others(leader)[0], r.c.Others(leader)[1]
			r.traffic.Thick(t)
			cut.cut(leader, a, b)
			if cut.goesOn {
				took := r.traffic.Probe(t, b)
				r.figures.gaps = append(r.figures.gaps, took)
				if took > within(3*time.Second) {
					t.Errorf("cut %s, the next identity came after %s, want 3s", cut.what, took)
				}
				r.traffic.Thick(t)
			} else {
				after(3 * time.Second)
			}
			r.c.Heal()
			r.c.WaitReady(t)
		}
	}
	r.ends(t)
}

// TestF08FlappingLinks cuts all links of one node off and on again, five times a
// second: something is answered all the time.
func TestF08FlappingLinks(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	r.traffic.Thick(t)
	for range r.cycles(t, 2, 12) {
		r.Outage()
		flapping := r.c.Leader(t)
		for begin := time.Now(); time.Since(begin) < 5*time.Second; {
			r.c.Isolate(flapping)
			after(200 * time.Millisecond)
			r.c.Heal()
			after(200 * time.Millisecond)
		}
		if outage := r.Outage(); outage > within(5*time.Second) {
			t.Errorf("nothing was answered for %s", outage)
		}
	}
	r.ends(t)
}
