package peers

import (
	"bytes"
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// hintAfter is the time without a known leader after which a node accepts other nodes'
	// reports of the leader. It is longer than an election, in which others still name the leader
	// that just died.
	hintAfter = time.Second
	// hintAge is the greatest age of another member's report of a leader.
	hintAge = 500 * time.Millisecond
)

// Hint is the leader by other nodes' answers, and where it is by their tables. A node that
// came back under another address needs it: the leader cannot find it before it has
// announced the address, and it cannot announce without knowing the leader, which may have
// moved as well.
type Hint struct {
	mu     sync.Mutex
	leader string
	at     time.Time
	// member is the leader in the table of the follower that was asked; nil before. asked is
	// when a follower was asked last.
	member *raftlogv1.Member
	asked  time.Time
	// without is the time since when Raft here has no known leader; zero if there is one.
	without time.Time
}

func (h *Hint) heard(now time.Time, leader []byte) {
	if len(leader) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader, h.at = string(member.ServerID(leader)), now
}

// Choose returns the leader: Raft's here, or, if it has known none for long enough, the
// other nodes'.
func (h *Hint) Choose(now time.Time, own, self string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own != "" {
		h.without, h.member = time.Time{}, nil
		return own
	}
	if h.without.IsZero() {
		h.without = now
	}
	if now.Sub(h.without) < hintAfter || now.Sub(h.at) > hintAge || h.leader == self {
		return ""
	}
	return h.leader
}

// ask reports, at most once in hintAfter, that this node is to ask where the leader is,
// because Raft here has known none for long enough.
func (h *Hint) ask(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.without.IsZero() || now.Sub(h.without) < hintAfter || now.Sub(h.asked) < hintAfter {
		return false
	}
	h.asked = now
	return true
}

// Without returns for how long Raft here has had no known leader; 0 if there is one.
func (h *Hint) Without(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.without.IsZero() {
		return 0
	}
	return now.Sub(h.without)
}

func (h *Hint) lost(now time.Time) bool { return h.Without(now) >= hintAfter }

// found records a leader as another node's table has it. The cluster has agreed on that. A
// member's own word for its address could be that of a copy of its data directory.
func (h *Hint) found(member *raftlogv1.Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.without.IsZero() {
		h.member = member
	}
}

// Locate returns the address of a leader: from this node's table, or, while Raft here has no known
// leader, from another member's table, unless that is of an earlier start.
func (h *Hint) Locate(known *raftlogv1.Member) *raftlogv1.Member {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.member != nil && bytes.Equal(h.member.GetId(), known.GetId()) && h.member.GetStarts() >= known.GetStarts() {
		return h.member
	}
	return known
}
