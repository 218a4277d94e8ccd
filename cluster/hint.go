package cluster

import (
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

const (
	// hintAfter is how long a node must have been without a leader of its own
	// before it believes others about who leads. It is longer than an election,
	// during which others still name the leader that has just died.
	hintAfter = time.Second
	// hintAge is how old what others say may be.
	hintAge = 500 * time.Millisecond
)

// hint is what other nodes say about who leads. A node that came back under
// another address needs it: the leader cannot find it before it has announced
// the address, and it cannot announce without knowing the leader.
type hint struct {
	mu     sync.Mutex
	leader string
	at     time.Time
	// without is since when Raft here knows of no leader; zero if it does.
	without time.Time
}

// heard takes note of what another node says.
func (h *hint) heard(now time.Time, leader []byte) {
	if len(leader) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader, h.at = string(member.ServerID(leader)), now
}

// choose returns who leads: what Raft here says, or, if it has said nothing for
// long enough, what others say.
func (h *hint) choose(now time.Time, own, self string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own != "" {
		h.without = time.Time{}
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
