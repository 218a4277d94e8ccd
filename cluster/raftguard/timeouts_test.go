package raftguard

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const ms = time.Millisecond

func newTimeouts() *Timeouts {
	t := NewTimeouts(250*ms, 200*ms, 20*ms, func(uint64, time.Duration) {}, slog.New(slog.DiscardHandler))
	t.raft, t.roundTrip = idleLibrary(), func(raft.ServerID) time.Duration { return 20 * ms }
	return t
}

// idleLibrary is a library with the same timeouts, which knows no servers.
func idleLibrary() *raft.Raft {
	config, store := raft.DefaultConfig(), raft.NewInmemStore()
	config.LocalID, config.Logger = "a", hclog.NewNullLogger()
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 250*ms, 250*ms, 200*ms
	config.CommitTimeout = 20 * ms
	_, transport := raft.NewInmemTransport("a")
	r, err := raft.NewRaft(config, &raft.MockFSM{}, store, store, raft.NewInmemSnapshotStore(), transport)
	if err != nil {
		panic(err)
	}
	return r
}

func leaseOf(r *raft.Raft) time.Duration {
	return configuration(r).Load().(raft.Config).LeaderLeaseTimeout
}

// TestTheElectionTimeoutFollowsTheDisk: it holds four writes, stays while it is enough and
// less than twice as long, and is never shorter than configured.
func TestTheElectionTimeoutFollowsTheDisk(t *testing.T) {
	timeouts := newTimeouts()
	defer func() { _ = timeouts.raft.Shutdown().Error() }()
	for _, tt := range []struct{ took, want time.Duration }{
		{ms, 250 * ms},
		{60 * ms, 250 * ms},
		{100 * ms, 400 * ms},
		{60 * ms, 400 * ms},
		{500 * ms, 2 * time.Second},
		{300 * ms, 2 * time.Second},
		{100 * ms, 400 * ms},
		{time.Minute, 16 * time.Second},
		{ms, 250 * ms},
	} {
		if timeouts.elections = timeouts.after(tt.took); timeouts.elections != tt.want {
			t.Errorf("after a write of %v it is %v, want %v", tt.took, timeouts.elections, tt.want)
		}
	}
}

// TestTheElectionTimeoutForgets: a single slow write of a term, or of a vote, counts for two minutes at most. As
// long as all writes of the log are slow, so is the next of a term.
func TestTheElectionTimeoutForgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		slow   func(*Timeouts)
		writes time.Duration // of the log, one a second
		want   time.Duration
	}{
		{"a term", func(e *Timeouts) { e.TermWritten(4 * time.Second) }, 0, 250 * ms},
		{"a vote", func(e *Timeouts) { e.VoteAnswered(4 * time.Second) }, 0, 250 * ms},
		{"a term, and the log is quick", func(e *Timeouts) { e.TermWritten(4 * time.Second) }, ms, 250 * ms},
		{"a term, and so is the log", func(e *Timeouts) { e.TermWritten(240 * ms) }, 120 * ms, 960 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTimeouts()
				defer func() { _ = e.raft.Shutdown().Error() }()
				tt.slow(e)
				if e.Election() <= 250*ms {
					t.Error("it does not count")
				}
				for range 130 {
					time.Sleep(time.Second)
					if tt.writes > 0 {
						e.Wrote(tt.writes)
					}
					e.Duty().Check(time.Now())
				}
				if got := e.Election(); got != tt.want {
					t.Errorf("after two minutes the timeout is %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestTheElectionTimeoutFollowsTheVoters: the slowest voter's answer counts as its two writes.
func TestTheElectionTimeoutFollowsTheVoters(t *testing.T) {
	e := newTimeouts()
	defer func() { _ = e.raft.Shutdown().Error() }()
	e.VoteAnswered(time.Second)
	e.VoteAnswered(ms) // The quick one is first in the next term.
	if got := e.Election(); got != 2*time.Second {
		t.Errorf("it is %v, want 2s", got)
	}
}

// TestTimeoutsFollowGaps: heartbeats that come late make followers and leaders wait for longer, but
// not the leader send heartbeats less often; they are forgotten after ten minutes.
func TestTimeoutsFollowGaps(t *testing.T) {
	const usual = 250*ms/5 + 20*ms // A heartbeat after the answer to the one before.
	for _, tt := range []struct {
		name             string
		leads, was       bool   // was: the gaps were seen as a leader.
		term             uint64 // that this node has entered; what it hears is of term 5.
		gap              time.Duration
		heartbeat, lease time.Duration
	}{
		{"a follower of a usual leader", false, false, 5, usual + 25*ms, 250 * ms, 200 * ms},
		{"a follower of a late one", false, false, 5, usual + 50*ms, 450 * ms, 200 * ms},
		{"a follower of a very late one", false, false, 5, 900 * ms, 850 * ms, 200 * ms},
		{"a follower that has not written the term yet", false, false, 4, 900 * ms, 850 * ms, 200 * ms},
		{"a voter that has replaced a late one", false, false, 6, 900 * ms, 250 * ms, 200 * ms},
		{"a follower of one that stood still", false, false, 5, time.Second, 250 * ms, 200 * ms},
		{"a leader", true, true, 6, usual + 50*ms, 250 * ms, 600 * ms},
		{"a leader that saw it as a follower", true, false, 5, usual + 50*ms, 250 * ms, 600 * ms},
		{"a former leader", false, true, 6, usual + 50*ms, 250 * ms, 200 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTimeouts()
				defer func() { _ = e.raft.Shutdown().Error() }()
				e.EnterTerm(tt.term)
				if tt.was {
					e.AnswerHeard("b", tt.gap)
				} else {
					e.LeaderHeard("b", 5, tt.gap)
				}
				e.Leads(tt.leads)
				is := func(heartbeat, lease time.Duration) {
					t.Helper()
					got := e.raft.ReloadableConfig()
					if got.HeartbeatTimeout != heartbeat || got.ElectionTimeout != heartbeat || leaseOf(e.raft) != lease {
						t.Errorf("the library has %v, %v and a lease of %v, want %v, %v", got.HeartbeatTimeout, got.ElectionTimeout,
							leaseOf(e.raft), heartbeat, lease)
					}
				}
				is(tt.heartbeat, tt.lease)
				time.Sleep(gapsRemembered - time.Second)
				e.Duty().Check(time.Now())
				is(tt.heartbeat, tt.lease)
				time.Sleep(gapsRemembered + time.Second)
				e.Duty().Check(time.Now())
				rest := 200 * ms
				if tt.leads {
					rest += 250 * ms / HeartbeatShare // Nothing was written.
				}
				is(250*ms, rest)
			})
		})
	}
}

// TestATransferGetsTheTimeThatItsWritesNeed, and the timeout is as before afterwards.
func TestATransferGetsTheTimeThatItsWritesNeed(t *testing.T) {
	e := newTimeouts()
	defer func() { _ = e.raft.Shutdown().Error() }()
	for _, tt := range []struct{ took, want time.Duration }{
		{ms, 250 * ms}, {450 * ms, 1800 * ms}, {4 * time.Second, maxTransferTimeout},
	} {
		e.Wrote(tt.took)
		limit, lower := e.RaiseForTransfer()
		if got := e.raft.ReloadableConfig().ElectionTimeout; got != tt.want || limit != tt.want {
			t.Errorf("after a write of %v a transfer has %v, and says %v, want %v", tt.took, got, limit, tt.want)
		}
		if lower(); e.Election() != 250*ms {
			t.Errorf("afterwards the timeout is %v", e.Election())
		}
	}
}

// TestAnIdleLeaderSendsFewAppends: the commit timeout is long after ten to twenty seconds without entries, and as
// configured before the next entries are written.
func TestAnIdleLeaderSendsFewAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTimeouts()
		defer func() { _ = e.raft.Shutdown().Error() }()
		commit := func() time.Duration { return configuration(e.raft).Load().(raft.Config).CommitTimeout }
		for _, tt := range []struct {
			name string
			do   func()
			want time.Duration
		}{
			{"entries", e.Appending, 20 * ms},
			{"a look, and entries before it", func() { e.Duty().Check(time.Now()) }, 20 * ms},
			{"another, and none", func() { e.Duty().Check(time.Now()) }, 250 * ms},
			{"a third", func() { e.Duty().Check(time.Now()) }, 250 * ms},
			{"entries again", e.Appending, 20 * ms},
			{"and more", e.Appending, 20 * ms},
			{"one look", func() { e.Duty().Check(time.Now()) }, 20 * ms},
		} {
			tt.do()
			if got := commit(); got != tt.want {
				t.Errorf("%s: the commit timeout is %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}
