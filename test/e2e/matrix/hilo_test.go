package matrix

import (
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestF26RangesAbused has dishonest callers return ranges late, twice, below their
// beginning, and in another's name, while leaders are killed: no number is ever
// used by two.
func TestF26RangesAbused(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for _, n := range r.c.Nodes {
		r.traffic.Abuse(n, 4)
	}
	for range r.cycles(t, 3, 200) {
		leader := r.c.Leader(t)
		r.traffic.Thick(t)
		leader.Process.Kill()
		r.traffic.Thick(t)
		r.restart(t, leader)
	}
	r.ends(t)
}
