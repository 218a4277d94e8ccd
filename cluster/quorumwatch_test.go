package cluster

import "testing"

// TestLeaderChanges: a fail-over is another leader than the last one known, however
// long nobody led in between.
func TestLeaderChanges(t *testing.T) {
	changes := 0
	s := leaderChanges{changed: func() { changes++ }}
	for _, step := range []struct {
		leader string
		want   int
	}{{"", 0}, {"a", 0}, {"a", 0}, {"", 0}, {"a", 0}, {"", 0}, {"b", 1}, {"b", 1}, {"a", 2}} {
		s.observe(step.leader)
		if changes != step.want {
			t.Errorf("after %q: %d changes, want %d", step.leader, changes, step.want)
		}
	}
}
