package cluster

import "testing"

// TestSuccession: a fail-over is another leader than the last one known, however
// long nobody led in between.
func TestSuccession(t *testing.T) {
	changes := 0
	s := succession{changed: func() { changes++ }}
	for _, step := range []struct {
		leader string
		want   int
	}{{"", 0}, {"a", 0}, {"a", 0}, {"", 0}, {"a", 0}, {"", 0}, {"b", 1}, {"b", 1}, {"a", 2}} {
		s.saw(step.leader)
		if changes != step.want {
			t.Errorf("after %q: %d changes, want %d", step.leader, changes, step.want)
		}
	}
	(&succession{last: "a"}).saw("b") // Nobody to tell.
}
