package cluster_test

import (
	"testing"
)

func TestProposeFromEveryNode(t *testing.T) {
	n := startNetwork(t, 3)
	want := int64(0)
	for range 3 {
		for _, s := range n.servers {
			want++
			if got := s.mustNext("users"); got != want {
				t.Errorf("%s gave %d, want %d", s.tag, got, want)
			}
		}
	}
	n.agree()
}
