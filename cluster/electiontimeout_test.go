package cluster

import (
	"log/slog"
	"testing"
	"time"
)

// TestTheElectionTimeoutFollowsTheDisk: it holds four writes, stays while it is enough and
// less than twice as long, and is never shorter than configured.
func TestTheElectionTimeoutFollowsTheDisk(t *testing.T) {
	e := newElectionTimeout(250*time.Millisecond, nil)
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

// TestTheElectionTimeoutFollowsTheVoters: the slowest answer since the newest term with a vote
// counts as a voter's two writes.
func TestTheElectionTimeoutFollowsTheVoters(t *testing.T) {
	e := newElectionTimeout(250*time.Millisecond, slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		term       uint64
		took, want time.Duration
		granted    bool
	}{
		{2, time.Millisecond, 250 * time.Millisecond, true},
		{2, time.Second, 2 * time.Second, true},
		{2, time.Millisecond, 2 * time.Second, true},
		{3, time.Millisecond, 2 * time.Second, false},
		{3, 1500 * time.Millisecond, 3 * time.Second, false},
		{4, 900 * time.Millisecond, 3 * time.Second, true},
		{3, 5 * time.Second, 3 * time.Second, true},
		{5, time.Millisecond, 250 * time.Millisecond, true},
	} {
		if e.voteAnswered(tt.term, tt.took, tt.granted); e.current != tt.want {
			t.Errorf("after an answer in term %d after %v it is %v, want %v", tt.term, tt.took, e.current, tt.want)
		}
	}
}
