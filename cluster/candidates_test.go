package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestFittest(t *testing.T) {
	const commit = 10_000
	with := func(c candidate, priority uint32) candidate {
		c.priority = priority
		return c
	}
	of := func(id string, applied uint64, full bool) candidate {
		return candidate{server: raft.Server{ID: raft.ServerID(id)}, applied: applied, behind: commit - applied, priority: 1, full: full}
	}
	slow := func(c candidate) candidate {
		c.slow = true
		return c
	}
	offered := func(c candidate, at uint64) candidate {
		c.offered = at
		return c
	}
	tests := []struct {
		name string
		all  []candidate
		best raft.ServerID
		// differ means that one is not like the others.
		differ bool
	}{
		{"nobody answers", nil, "", false},
		{"the furthest of those with room", []candidate{of("a", commit-9, false), of("b", commit-8, false), of("c", commit, true)}, "b", true},
		{"all full", []candidate{of("a", commit, true), of("b", commit, true)}, "", true},
		{"the furthest of those whose disk is not slow", []candidate{of("a", commit-9, false), slow(of("b", commit, false)), of("c", commit-8, false)}, "c", true},
		{"all slow", []candidate{slow(of("a", commit, false)), slow(of("b", commit, false))}, "", true},
		{"one full, one slow", []candidate{of("a", commit, true), slow(of("b", commit, false))}, "", true},
		{"the greatest priority", []candidate{of("a", commit, false), with(of("b", commit-8, false), 2), of("c", commit, false)}, "b", true},
		{"the greatest priority is far behind", []candidate{of("a", commit, false), with(of("b", 1, false), 2)}, "a", true},
		{"one that shall not lead", []candidate{with(of("a", commit, false), 0), offered(of("b", commit-8, false), 7)}, "b", true},
		{"one that shall not lead, and one that cannot", []candidate{with(of("a", commit, false), 0), slow(of("b", commit, false))}, "a", true},
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
		best, found, differ := fittest(tt.all)
		if best.server.ID != tt.best || found != (tt.best != "") || differ != tt.differ {
			t.Errorf("%s: %q, %v, %v; want %q, differ %v", tt.name, best.server.ID, found, differ, tt.best, tt.differ)
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
		best, _, _ := fittest(all)
		o.made(best.server.ID)
		if best.server.ID != want {
			t.Errorf("offer %d goes to %q, want %q", i, best.server.ID, want)
		}
	}
}
