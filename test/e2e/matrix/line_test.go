package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// far is a round trip of 75 ms, give or take 50: a way between continents.
var far = edge.Line{Delay: 37500 * time.Microsecond, Jitter: 25 * time.Millisecond}

// spare is for how long the machine may stand still in sum without a leader's lease
// ending on a line that is far.
const spare = 100 * time.Millisecond

// TestF09BadLines lets all messages between nodes take long, get lost and wait for
// room: a long way alone changes no leader, and something is answered on each line.
// Beyond a relay of TCP a lost packet is one that comes late.
func TestF09BadLines(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{})
	c.Become(far)
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	for range r.cycles(t, 1, 30) {
		begin, term := time.Now(), termOf(t, c.Leader(t))
		r.answersOn(t, "far", far, 6*time.Second)
		now := termOf(t, c.Leader(t))
		if stood := r.Stalls.Between(begin, time.Now()); now != term && stood < spare {
			t.Errorf("another leader was elected at a round trip of 75 ms: term %d, then %d", term, now)
		}
		for _, loss := range []float64{0.1, 0.3} {
			line := edge.Line{Delay: time.Millisecond, Loss: loss}
			r.answersOn(t, fmt.Sprintf("with a loss of %.0f %%", 100*loss), line, 6*time.Second)
		}
		r.answersOn(t, "of 1 Mbit/s", edge.Line{Delay: time.Millisecond, BytesPerSecond: 125_000}, 6*time.Second)
		r.c.Become(far)
		r.c.WaitReady(t)
	}
	r.ends(t)
}

// answersOn makes all edges such lines for a while, in which something must be
// answered.
func (r *row) answersOn(t *testing.T, name string, line edge.Line, length time.Duration) {
	t.Helper()
	r.c.Become(line)
	before := r.OK()
	after(length)
	rate := float64(r.OK()-before) / length.Seconds()
	t.Logf("%.0f calls a second that a majority agreed on, on lines %s", rate, name)
	if rate == 0 {
		t.Errorf("nothing was answered for %s on lines %s", length, name)
	}
}

// termOf is the term that a node knows of.
func termOf(t *testing.T, n *harness.Node) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Term
}
