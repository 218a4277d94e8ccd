package raftguard

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestTheElectionTimeoutFollowsTheDisk: it holds four writes, stays while it is enough and
// less than twice as long, and is never shorter than configured.
func TestTheElectionTimeoutFollowsTheDisk(t *testing.T) {
	e := NewElectionTimeout(250*time.Millisecond, nil, nil)
	for _, tt := range []struct{ took, want time.Duration }{
		{time.Millisecond, 250 * time.Millisecond},
		{60 * time.Millisecond, 250 * time.Millisecond},
		{100 * time.Millisecond, 400 * time.Millisecond},
		{60 * time.Millisecond, 400 * time.Millisecond},
		{500 * time.Millisecond, 2 * time.Second},
		{300 * time.Millisecond, 2 * time.Second},
		{100 * time.Millisecond, 400 * time.Millisecond},
		{time.Minute, 16 * time.Second},
		{time.Millisecond, 250 * time.Millisecond},
	} {
		if e.current = e.after(tt.took); e.current != tt.want {
			t.Errorf("after a write of %v it is %v, want %v", tt.took, e.current, tt.want)
		}
	}
}

// TestTheElectionTimeoutFollowsTheVoters: the slowest voter's last answer counts as its two
// writes, until it has given its vote more quickly, or answered nothing while others gave theirs
// in more than two terms.
func TestTheElectionTimeoutFollowsTheVoters(t *testing.T) {
	const ms = time.Millisecond
	e := NewElectionTimeout(250*ms, nil, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		voter      raft.ServerID
		term       uint64
		took, want time.Duration
		granted    bool
	}{
		{"b", 2, ms, 250 * ms, true},
		{"c", 2, 1000 * ms, 2000 * ms, true},
		{"b", 3, ms, 2000 * ms, true}, // The quick one is first in the next term.
		{"c", 3, ms, 2000 * ms, false},
		{"c", 3, 1500 * ms, 3000 * ms, false},
		{"c", 4, 900 * ms, 3000 * ms, true},
		{"c", 4, ms, 250 * ms, true},
		{"b", 7, ms, 250 * ms, true},
		{"c", 4, 600 * ms, 1200 * ms, true}, // Late, and the newest that is known of it.
		{"b", 8, ms, 1200 * ms, true},
		{"b", 9, ms, 1200 * ms, true},
		{"b", 10, ms, 250 * ms, true}, // The slow one is lost.
	} {
		if e.VoteAnswered(tt.voter, tt.term, tt.took, tt.granted); e.current != tt.want {
			t.Errorf("after %s's answer in term %d after %v it is %v, want %v", tt.voter, tt.term, tt.took, e.current, tt.want)
		}
	}
}
