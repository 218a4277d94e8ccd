package cluster

import (
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

const (
	// hintAfter is how long a node must know no leader before it takes other nodes' word
	// for who leads. It is longer than an election, in which others still name the leader
	// that just died.
	hintAfter = time.Second
	// hintAge is how old what others say may be.
	hintAge = 500 * time.Millisecond
)

// hint is the leader by other nodes' answers. A node that came back under another address
// needs it: the leader cannot find it before it has announced the address, and it cannot
// announce without knowing the leader.
type hint struct {
	mu     sync.Mutex
	leader string
	at     time.Time
	// without is since when Raft here knows of no leader; zero if it does.
	without time.Time
}

// heard records what another node says.
func (h *hint) heard(now time.Time, leader []byte) {
	if len(leader) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader, h.at = string(member.ServerID(leader)), now
}

// choose returns the leader: Raft's here, or, if it has known none for long enough, the
// other nodes'.
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
