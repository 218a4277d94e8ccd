package cluster

import (
	"slices"
	"sync"
	"time"
)

const (
	// quorumTick is how often the evidence is checked.
	quorumTick = 25 * time.Millisecond
	// minGrace is how old the newest evidence of a quorum may be. A call in flight must
	// learn within 0.6 s that the quorum is gone, on a busy machine too; the evidence is
	// at most one heartbeat old when a link is cut.
	minGrace = 350 * time.Millisecond
	// pingAfter is how old Raft's own evidence may be before peers are pinged,
	// pingEvery the time between two pings, pingTimeout the time a peer has.
	pingAfter   = 100 * time.Millisecond
	pingEvery   = 100 * time.Millisecond
	pingTimeout = 300 * time.Millisecond
)

// graceFor returns how old the newest evidence may be with the given lease of a leader. A
// leader's own is always one lease old; the rest is the delay that a busy machine may
// add.
func graceFor(lease time.Duration) time.Duration { return max(minGrace, lease*7/4) }

// quorumMonitor judges from evidence whether a quorum can be reached. It has no clock
// and no lock of its own.
//
// Evidence is a moment at which a quorum certainly was in reach: a leader has it by its
// lease, a follower by messages of its leader, and a node without a leader by answers of
// a majority, because then an election is in progress and will end.
type quorumMonitor struct {
	grace  time.Duration
	newest time.Time
	looked time.Time
}

// look takes the newest evidence and reports whether a quorum counts as in reach. Time
// without calls of look does not count: then this process hardly ran, and could not see
// any evidence.
func (c *quorumMonitor) look(now, evidence time.Time) bool {
	if away := now.Sub(c.looked) - 4*quorumTick; !c.looked.IsZero() && away > 0 {
		c.newest = c.newest.Add(away)
	}
	c.looked = now
	if evidence.After(c.newest) {
		c.newest = evidence
	}
	return !c.newest.IsZero() && now.Sub(c.newest) <= c.grace
}

// voterReplies remembers when each voter last answered a ping, by the time the ping
// was sent.
type voterReplies struct {
	mu     sync.Mutex
	sent   map[string]time.Time
	asking map[string]bool
}

func newVoterReplies() *voterReplies {
	return &voterReplies{sent: map[string]time.Time{}, asking: map[string]bool{}}
}

// ask reports whether the voter may be pinged now: one ping at a time.
func (a *voterReplies) ask(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking[id] {
		return false
	}
	a.asking[id] = true
	return true
}

// answered records the end of a ping that ask allowed.
func (a *voterReplies) answered(id string, sent time.Time, ok bool) {
	a.mu.Lock()
	delete(a.asking, id)
	a.mu.Unlock()
	a.heard(id, sent, ok)
}

// heard records the end of any ping.
func (a *voterReplies) heard(id string, sent time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ok && sent.After(a.sent[id]) {
		a.sent[id] = sent
	}
}

// majority returns the newest moment at which a majority of the voters was in
// reach: self counts as now. The zero time means never.
func (a *voterReplies) majority(now time.Time, self string, voters []string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	times := make([]time.Time, 0, len(voters))
	for _, id := range voters {
		if id == self {
			times = append(times, now)
			continue
		}
		times = append(times, a.sent[id])
	}
	if len(times) == 0 {
		return time.Time{}
	}
	slices.SortFunc(times, func(x, y time.Time) int { return y.Compare(x) })
	return times[len(times)/2]
}

// quorumState is whether a quorum is in reach, with a channel for changes.
type quorumState struct {
	mu      sync.Mutex
	present bool
	// since is when it last changed; at first, when the node was opened.
	since   time.Time
	changed chan struct{}
}

func newQuorumState() *quorumState {
	return &quorumState{since: time.Now(), changed: make(chan struct{})}
}

// set returns whether this is a change.
func (v *quorumState) set(present bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.present == present {
		return false
	}
	v.present, v.since = present, time.Now()
	close(v.changed)
	v.changed = make(chan struct{})
	return true
}

func (v *quorumState) get() (present bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.present, v.changed
}

// missing returns for how long the quorum has been out of reach; 0 if it is not.
func (v *quorumState) missing(now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.present {
		return 0
	}
	return max(0, now.Sub(v.since))
}
