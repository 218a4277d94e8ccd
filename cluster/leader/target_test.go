package leader

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestFittest(t *testing.T) {
	const commit = 10_000
	with := func(c transferTarget, priority uint32) transferTarget {
		c.priority = priority
		return c
	}
	of := func(id string, applied uint64, full bool) transferTarget {
		return transferTarget{server: raft.Server{ID: raft.ServerID(id)}, applied: applied, behind: commit - applied, priority: 1, full: full}
	}
	slow := func(c transferTarget) transferTarget {
		c.slow = true
		return c
	}
	lonely := func(c transferTarget) transferTarget {
		c.lonely = true
		return c
	}
	offered := func(c transferTarget, at uint64) transferTarget {
		c.attempted = at
		return c
	}
	tests := []struct {
		name string
		all  []transferTarget
		best raft.ServerID
		// differ means that one is not like the others.
		differ bool
	}{
		{"nobody answers", nil, "", false},
		{
			"the furthest of those with room",
			[]transferTarget{of("a", commit-9, false), of("b", commit-8, false), of("c", commit, true)},
			"b", true,
		},
		{"all full", []transferTarget{of("a", commit, true), of("b", commit, true)}, "", true},
		{
			"the furthest of those whose disk is not slow",
			[]transferTarget{of("a", commit-9, false), slow(of("b", commit, false)), of("c", commit-8, false)},
			"c", true,
		},
		{"all slow", []transferTarget{slow(of("a", commit, false)), slow(of("b", commit, false))}, "", true},
		{"the furthest of those in touch with a majority", []transferTarget{of("a", commit-9, false), lonely(of("b", commit, false))}, "a", true},
		{"one full, one slow", []transferTarget{of("a", commit, true), slow(of("b", commit, false))}, "", true},
		{"the greatest priority", []transferTarget{of("a", commit, false), with(of("b", commit-8, false), 2), of("c", commit, false)}, "b", true},
		{"the greatest priority is far behind", []transferTarget{of("a", commit, false), with(of("b", 1, false), 2)}, "a", true},
		{"one that shall not lead", []transferTarget{with(of("a", commit, false), 0), offered(of("b", commit-8, false), 7)}, "b", true},
		{
			"one that shall not lead, and one that cannot",
			[]transferTarget{with(of("a", commit, false), 0), slow(of("b", commit, false))},
			"a", true,
		},
		{"far behind", []transferTarget{of("a", commit-nearEnough-1, false)}, "", false},
		{"nearly caught up", []transferTarget{of("a", commit-nearEnough, false)}, "a", false},
		{
			"one that was offered leadership, and another",
			[]transferTarget{offered(of("a", commit, false), 1), of("b", commit-8, false), of("c", commit-9, false)},
			"b", false,
		},
		{
			"the one whose offer is the oldest",
			[]transferTarget{offered(of("a", commit, false), 3), offered(of("b", commit, false), 2), offered(of("c", commit, true), 1)},
			"b", true,
		},
		{
			"one that was offered leadership, and others that cannot lead",
			[]transferTarget{of("a", commit, true), offered(of("b", commit, false), 1), of("c", 1, false)},
			"b", true,
		},
	}
	for _, tt := range tests {
		best, found, differ := bestTarget(tt.all)
		if best.server.ID != tt.best || found != (tt.best != "") || differ != tt.differ {
			t.Errorf("%s: %q, %v, %v; want %q, differ %v", tt.name, best.server.ID, found, differ, tt.best, tt.differ)
		}
	}
}

// TestLeadershipIsOfferedToAllInTurn: none of them takes it, or all give it back.
func TestLeadershipIsOfferedToAllInTurn(t *testing.T) {
	var o transferAttempts
	for i, want := range []raft.ServerID{"a", "b", "c", "a", "b", "c"} {
		var all []transferTarget
		for _, id := range []raft.ServerID{"a", "b", "c"} {
			all = append(all, transferTarget{server: raft.Server{ID: id}, applied: 7, attempted: o.newestTo(id)})
		}
		best, _, _ := bestTarget(all)
		o.add(best.server.ID)
		if best.server.ID != want {
			t.Errorf("offer %d goes to %q, want %q", i, best.server.ID, want)
		}
	}
}
