package matrix

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// wideArea are the settings that docs/operate/sites.md gives for links that the defaults
// do not stand.
var wideArea = []string{"--heartbeat-timeout=1500ms", "--call-timeout=10s"}

// TestLinks serves over a link that the defaults do not stand, with the settings for
// such links. IDNODE_E2E_LINKS=all measures the table of docs/operate/sites.md.
func TestLinks(t *testing.T) {
	tier.Long(t)
	ms := time.Millisecond
	length, lines, settings := 6*time.Second, []edge.Line{{Delay: 100 * ms}}, [][]string{wideArea}
	if os.Getenv("IDNODE_E2E_LINKS") == "all" {
		length, settings = 20*time.Second, append(settings, nil)
		lines = []edge.Line{
			{Delay: ms},
			{Delay: 30 * ms},
			{Delay: 60 * ms},
			{Delay: 80 * ms},
			{Delay: 100 * ms},
			{Delay: 150 * ms},
			{Delay: ms, Loss: 0.01},
			{Delay: ms, Loss: 0.05},
			{Delay: ms, Loss: 0.1},
			{Delay: ms, Loss: 0.3},
			{Delay: 60 * ms, Loss: 0.05},
			{Delay: 100 * ms, Loss: 0.05},
		}
	}
	for _, flags := range settings {
		c := harness.NewCluster(t, harness.Config{Flags: flags})
		near := edge.Line{Delay: 100 * time.Microsecond}
		c.Become(near) // Later lines count for the connections made now.
		for _, n := range c.Nodes {
			n.Start(t)
		}
		for _, line := range lines {
			c.Become(near)
			c.WaitReady(t)
			c.Become(line)
			after(2 * time.Second)
			s := serve(t, c, length)
			t.Logf("%s: one way %v, loss %.0f %%: %.0f answers a second, %.2f %% failed, longest %v, %d elections",
				strings.Join(flags, " "), line.Delay, 100*line.Loss, s.rate, s.failed, s.longest.Round(ms), s.elections)
			if flags != nil && s.rate == 0 {
				t.Errorf("with the settings for wide areas there is no service: one way %v, loss %.0f %%", line.Delay, 100*line.Loss)
			}
		}
		c.Become(near)
		c.WaitReady(t)
		c.Agree(t)
	}
}

// service is what callers got on a line: answers a second, the share of calls that
// failed in percent, how long the longest call took, and how often a leader was elected.
type service struct {
	rate, failed float64
	longest      time.Duration
	elections    uint64
}

// serve lets four callers of each node ask for values for a time.
func serve(t *testing.T, c *harness.Cluster, length time.Duration) service {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var mu sync.Mutex
	var s service
	var ok, calls float64
	call := func(n *harness.Node) {
		begin := time.Now()
		_, err := n.Ids.NextIdentity(context.Background(), &idnodev1.NextIdentityRequest{Name: "links"})
		mu.Lock()
		defer mu.Unlock()
		if calls++; err == nil {
			ok++
		}
		s.longest = max(s.longest, time.Since(begin))
	}
	before, begin := highestTerm(c), time.Now()
	var callers sync.WaitGroup
	for _, n := range c.Nodes {
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					call(n)
				}
			})
		}
	}
	callers.Wait()
	s.rate, s.failed = ok/time.Since(begin).Seconds(), 100*(calls-ok)/calls
	s.elections = highestTerm(c) - before
	return s
}

// highestTerm is the newest term that a node knows of.
func highestTerm(c *harness.Cluster) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var term uint64
	for _, n := range c.Nodes {
		if s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{}); err == nil {
			term = max(term, s.Term)
		}
	}
	return term
}
