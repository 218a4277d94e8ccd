// Package quorum tells whether a quorum is in reach of one node.
//
// Evidence is a moment at which a quorum certainly was in reach: a leader has it by its
// lease, a follower by messages of its leader, and a node without a leader by answers of
// a majority, because then an election is in progress and will end. A quorum counts as in
// reach while the newest evidence is young enough.
package quorum

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// pingAfter is how old Raft's own evidence may be before peers are pinged, pingEvery
	// the time between two pings.
	pingAfter = 100 * time.Millisecond
	pingEvery = 100 * time.Millisecond
	// PingTimeout is the time a voter has to answer.
	PingTimeout = 300 * time.Millisecond
	// Tick is how often the evidence is checked once it is as old as pingAfter, and leaderTick where this
	// node leads.
	Tick       = 25 * time.Millisecond
	leaderTick = 2 * Tick
	// minGrace is the lower bound of Grace. A call in flight must learn within 0.6 s that the
	// quorum is gone, on a busy machine too; the evidence is at most one heartbeat old when a
	// link is cut.
	minGrace = 350 * time.Millisecond
)

// Grace returns how old the newest evidence may be with the given lease of a leader. A
// leader's own is always one lease old; the rest is the delay that a busy machine may
// add.
func Grace(lease time.Duration) time.Duration { return max(minGrace, lease*7/4) }

// Raft is what the library knows.
type Raft interface {
	State() raft.RaftState
	// LastContact is when a follower last heard from the leader.
	LastContact() time.Time
}

// Config is what a Monitor needs. Voters are named by their raw Raft ids.
type Config struct {
	// Self is this node.
	Self string
	// Lease is how long a leader leads without contact with a quorum.
	Lease time.Duration
	Raft  Raft
	// Ping asks a voter for an answer. It ends soon after ctx.
	Ping func(ctx context.Context, voter string) error
	// Go runs a function on a goroutine of its own.
	Go func(func())
	// Reach learns what Look finds.
	Reach *Reach
}

// Monitor judges from evidence whether a quorum can be reached. Look is called by one
// goroutine; Heard is safe for concurrent use.
type Monitor struct {
	cfg      Config
	evidence evidence
	pinged   time.Time

	mu sync.Mutex
	// sent is when the newest ping was sent that each voter has answered.
	sent map[string]time.Time
	// asking are the voters that have a ping of this Monitor to answer.
	asking map[string]bool
}

// NewMonitor returns a Monitor that has no evidence.
func NewMonitor(cfg Config) *Monitor {
	return &Monitor{cfg: cfg, evidence: evidence{grace: Grace(cfg.Lease)}, sent: map[string]time.Time{}, asking: map[string]bool{}}
}

// Look reports whether a quorum of the voters is in reach, and whether that has changed.
// follows says that Raft knows another node as the leader. Where Raft's own evidence is
// old, the other voters are pinged, without waiting for the answers. again is when Look is to be
// called next.
func (m *Monitor) Look(ctx context.Context, voters []string, follows bool) (present, changed bool, again time.Duration) {
	now := time.Now()
	newest := m.ofRaft(now, follows)
	again = leaderTick
	if m.cfg.Raft.State() != raft.Leader {
		again = min(max(Tick, pingAfter-now.Sub(newest)), 3*Tick) // look counts what is longer than 4 ticks as no time.
		if now.Sub(newest) > pingAfter && now.Sub(m.pinged) > pingEvery {
			m.pinged = now
			m.ping(ctx, voters)
		}
	}
	if answered := m.majority(now, m.cfg.Self, voters); answered.After(newest) {
		newest = answered
	}
	present = m.evidence.look(now, newest)
	return present, m.cfg.Reach.set(present), again
}

// Heard takes the end of a ping that was sent to a voter, by the Monitor or others.
func (m *Monitor) Heard(voter string, sent time.Time, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answered && sent.After(m.sent[voter]) {
		m.sent[voter] = sent
	}
}

// ofRaft returns the newest moment at which Raft knew of a quorum. A leader steps down
// one lease after it last heard from a quorum, so while it leads, that moment is at most
// a lease ago. The last contact counts only while another node leads: Raft also sets it
// when a leader steps down, and when it grants a vote.
func (m *Monitor) ofRaft(now time.Time, follows bool) time.Time {
	switch {
	case m.cfg.Raft.State() == raft.Leader:
		return now.Add(-m.cfg.Lease)
	case !follows:
		return time.Time{}
	}
	return m.cfg.Raft.LastContact()
}

func (m *Monitor) ping(ctx context.Context, voters []string) {
	for _, id := range voters {
		if id == m.cfg.Self || !m.ask(id) {
			continue
		}
		m.cfg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, PingTimeout)
			defer cancel()
			sent := time.Now()
			err := m.cfg.Ping(ctx, id)
			m.Heard(id, sent, err == nil)
			m.asked(id)
		})
	}
}

// evidence decides by its age whether a quorum can be reached. It has no clock and no lock.
type evidence struct {
	grace  time.Duration
	newest time.Time
	looked time.Time
}

// look takes the newest evidence and reports whether a quorum counts as in reach. Time
// without calls of look does not count: then this process hardly ran, and could not see
// any evidence.
func (e *evidence) look(now, at time.Time) bool {
	if away := now.Sub(e.looked) - 4*Tick; !e.looked.IsZero() && away > 0 {
		e.newest = e.newest.Add(away)
	}
	e.looked = now
	if at.After(e.newest) {
		e.newest = at
	}
	return !e.newest.IsZero() && now.Sub(e.newest) <= e.grace
}

// ask reports whether the voter may be pinged now: one ping at a time.
func (m *Monitor) ask(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asking[id] {
		return false
	}
	m.asking[id] = true
	return true
}

// asked ends a ping that ask allowed.
func (m *Monitor) asked(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.asking, id)
}

// majority returns the newest moment at which a majority of the voters was in
// reach: self counts as now. The zero time means never.
func (m *Monitor) majority(now time.Time, self string, voters []string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	times := make([]time.Time, 0, len(voters))
	for _, id := range voters {
		if id == self {
			times = append(times, now)
			continue
		}
		times = append(times, m.sent[id])
	}
	if len(times) == 0 {
		return time.Time{}
	}
	slices.SortFunc(times, func(x, y time.Time) int { return y.Compare(x) })
	return times[len(times)/2]
}
