package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestRoomiest(t *testing.T) {
	of := func(id string, applied uint64, full bool) candidate {
		return candidate{raft.Server{ID: raft.ServerID(id)}, applied, full, 0}
	}
	offered := func(c candidate, at uint64) candidate {
		c.offered = at
		return c
	}
	const commit = 10_000
	tests := []struct {
		name string
		all  []candidate
		best raft.ServerID
		full bool
	}{
		{"nobody answers", nil, "", false},
		{"the furthest of those with room", []candidate{of("a", commit-9, false), of("b", commit-8, false), of("c", commit, true)}, "b", true},
		{"all full", []candidate{of("a", commit, true), of("b", commit, true)}, "", true},
		{"far behind", []candidate{of("a", commit-nearEnough-1, false)}, "", false},
		{"nearly caught up", []candidate{of("a", commit-nearEnough, false)}, "a", false},
		{
			"one that was offered leadership, and another",
			[]candidate{offered(of("a", commit, false), 1), of("b", commit-8, false), of("c", commit-9, false)},
			"b", false,
		},
		{
			"the one whose offer is the oldest",
			[]candidate{offered(of("a", commit, false), 3), offered(of("b", commit, false), 2), offered(of("c", commit, true), 1)},
			"b", true,
		},
		{
			"one that was offered leadership, and others that cannot lead",
			[]candidate{of("a", commit, true), offered(of("b", commit, false), 1), of("c", 1, false)},
			"b", true,
		},
	}
	for _, tt := range tests {
		best, found, full := roomiest(tt.all, commit)
		if best.server.ID != tt.best || found != (tt.best != "") || full != tt.full {
			t.Errorf("%s: %q, %v, %v; want %q, full %v", tt.name, best.server.ID, found, full, tt.best, tt.full)
		}
	}
}

// TestLeadershipIsOfferedToAllInTurn: none of them takes it, or all give it back.
func TestLeadershipIsOfferedToAllInTurn(t *testing.T) {
	var o offers
	for i, want := range []raft.ServerID{"a", "b", "c", "a", "b", "c"} {
		var all []candidate
		for _, id := range []raft.ServerID{"a", "b", "c"} {
			all = append(all, candidate{server: raft.Server{ID: id}, applied: 7, offered: o.newestTo(id)})
		}
		best, _, _ := roomiest(all, 7)
		o.made(best.server.ID)
		if best.server.ID != want {
			t.Errorf("offer %d goes to %q, want %q", i, best.server.ID, want)
		}
	}
}
