package matrix

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	year = 365 * 24 * time.Hour
	// smallestRange and largestRange are the bounds of a range's size, of whatever
	// the clocks say; a range may be larger by a little after a return.
	smallestRange, largestRange = 32, 1 << 20
)

// TestF17WrongClocks sets the clock of one node after the other, the leader's first,
// and of all together an hour back, a year ahead, and to and fro by a second; nodes
// are restarted meanwhile. No id depends on a clock, and a range is as large as ever.
func TestF17WrongClocks(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{})
	for _, n := range c.Nodes {
		n.Env = []string{"FAILPOINT_CLOCK=" + clockFile(n)}
		setClock(t, 0, n)
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	for range r.cycles(t, 1, 50) {
		for _, wrong := range []time.Duration{-time.Hour, year} {
			leader := c.Leader(t)
			last := rangeOf(t, leader, nil)
			setClock(t, wrong, leader)
			r.traffic.Thick(t)
			rangeOf(t, leader, last)
			// One that comes back finds the cluster at another time.
			leader.Process.Kill()
			r.restart(t, leader)
			setClock(t, wrong, c.Nodes...)
			r.traffic.Thick(t)
			rangeOf(t, leader, rangeOf(t, leader, last))
			leader.Process.Stop(t)
			r.restart(t, leader)
			setClock(t, 0, c.Nodes...)
			r.traffic.Thick(t)
			rangeOf(t, leader, last)
		}
		for i := range 40 {
			setClock(t, time.Duration(i%2)*time.Second, c.Nodes[i%3])
			after(25 * time.Millisecond)
		}
		setClock(t, 0, c.Nodes...)
	}
	r.ends(t)
}

func clockFile(n *harness.Node) string { return n.DataDir + ".clock" }

// setClock makes the clocks of nodes wrong. A node that reads its clock meanwhile
// finds the old file or the new one.
func setClock(t *testing.T, wrong time.Duration, nodes ...*harness.Node) {
	t.Helper()
	for _, n := range nodes {
		draft := filepath.Join(t.TempDir(), "clock")
		if err := os.WriteFile(draft, []byte(wrong.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(draft, clockFile(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// rangeOf takes a range as a caller does that got another one before; nil is none.
func rangeOf(t *testing.T, n *harness.Node, last *idnodev1.NextRangeResponse) *idnodev1.NextRangeResponse {
	t.Helper()
	var got *idnodev1.NextRangeResponse
	harness.Eventually(t, 10*time.Second, "a range", func(ctx context.Context) (err error) {
		got, err = n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{
			Tag: "timed", LastSize: last.GetSize(), LastRangeAt: last.GetRangeAt(), LastMax: last.GetHigh(),
		})
		return err
	})
	if got.Size < smallestRange || got.Size > largestRange || got.Low <= last.GetHigh() {
		t.Errorf("after a range of %d that ended at %d came one of %d that begins at %d", last.GetSize(), last.GetHigh(), got.Size, got.Low)
	}
	return got
}
