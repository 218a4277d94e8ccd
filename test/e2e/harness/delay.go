package harness

import (
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/edge"
)

// StartFarApart is StartCluster with nodes that are so far apart that a message
// from one to another takes d.
func StartFarApart(t testing.TB, cfg Config, d time.Duration) *Cluster {
	t.Helper()
	c := NewCluster(t, cfg)
	c.Become(edge.Line{Delay: d})
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	return c
}
