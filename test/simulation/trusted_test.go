package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/tier"
)

// trustWait is how long a node that trusts its disk waits for the other members.
const trustWait = time.Minute

// TestTheNewestOfThreeCopiesLeads: three machines come back with copies of their disks from
// three moments, in any order. The two older ones are trusted, as otherwise the newest refuses
// them. They are a majority, and must not go on without what only the newest has.
func TestTheNewestOfThreeCopiesLeads(t *testing.T) {
	tier.Long(t)
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, gap := range []time.Duration{0, trustWait / 3} {
			t.Run(fmt.Sprintf("%v/gap=%v", order, gap), func(t *testing.T) {
				inCluster(t, 3, func(_ *world, c *client) {
					last, start := c.setBackToThreeMoments(t)
					for _, i := range order {
						start[i]()
						time.Sleep(gap)
					}
					if next := c.nextWithin(2 * trustWait); next <= last {
						t.Errorf("%d was given after %d", next, last)
					}
					time.Sleep(settling) // No node ends.
				})
			})
		}
	}
}

// TestTrustedCopiesGoOnWithoutOneThatIsLost: when the time for the newest copy has passed.
func TestTrustedCopiesGoOnWithoutOneThatIsLost(t *testing.T) {
	inCluster(t, 3, func(_ *world, c *client) {
		_, start := c.setBackToThreeMoments(t)
		begun := time.Now()
		start[0]()
		start[1]()
		if next := c.nextWithin(2 * trustWait); next <= 2*given {
			t.Errorf("%d was given, and the second copy has %d", next, 2*given)
		}
		if took := time.Since(begun); took < trustWait {
			t.Errorf("it went on after %v, and the third one has %v to come", took, trustWait)
		}
	})
}

// given is how many identities are given before each copy.
const given = 20

// setBackToThreeMoments copies the disks of the three machines, one after the other, with
// identities given before each, and has the machines come back with their copies; the two
// older ones trusted. It returns the last identity, and what starts each.
func (c *client) setBackToThreeMoments(t *testing.T) (last int64, start []func()) {
	t.Helper()
	nodes := c.world.founders()
	var copies []*image
	for _, s := range nodes {
		for range given {
			last = c.nextWithin(settling)
		}
		time.Sleep(settling) // All have it.
		copies = append(copies, s.disk.copy())
	}
	c.world.tracer.end() // The model knows no operator who trusts an older copy.
	c.world.hashes.forget()
	for i, s := range nodes {
		start = append(start, s.hold())
		s.disk.putBack(copies[i])
		s.trusts.Store(i < len(nodes)-1)
		s.current().kill(false)
	}
	return last, start
}

// nextWithin returns an identity that any node gives in that time; 0 if none does.
func (c *client) nextWithin(limit time.Duration) int64 {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(betweenTries) {
		for _, s := range c.world.founders() {
			r, err := c.ids(s).NextIdentity(c.world.ctx, &idnodev1.NextIdentityRequest{Name: "copied", Count: 1})
			if err == nil {
				return r.GetBlocks()[0].GetFirst()
			}
		}
	}
	return 0
}

// end ends the trace: what follows is not judged.
func (t *tracer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// forget has the states that are seen from here on compared with each other alone.
func (h *hashes) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.seen)
}
