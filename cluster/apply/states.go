package apply

import (
	"sort"
	"sync"
)

// rememberedStates is how many log entries back a state can be compared. A busy leader writes
// a few thousand entries a second; a member's answer is compared on arrival, and a state that is
// ahead of this node waits.
const rememberedStates = 8192

// StateAt is the hash of the state after a log entry.
type StateAt struct{ Index, Hash uint64 }

// States remembers the hash of this node's state after each of its newest
// entries. It is safe for concurrent use.
//
// Invariant: the indexes in ring rise. An index between two of them is of an entry that
// is not for the state and does not change its hash.
type States struct {
	mu   sync.Mutex
	ring [rememberedStates]StateAt
	// count is how many were added since the state was last replaced by a snapshot,
	// restores how often it was.
	count, restores uint64
}

// add records a state, unless a state at this index or above is recorded.
func (s *States) add(index, hash uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count > 0 && s.ring[(s.count-1)%rememberedStates].Index >= index {
		return
	}
	s.ring[s.count%rememberedStates] = StateAt{index, hash}
	s.count++
}

// replace drops all states, because a snapshot replaced them, which may be older or
// newer. The snapshot's own state is not recorded: after a recovery each survivor has its
// own, and all but the leader's are replaced before an entry is applied.
func (s *States) replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = 0
	s.restores++
}

// Newest returns the newest state; index 0 means that there is no state yet.
func (s *States) Newest() StateAt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 {
		return StateAt{}
	}
	return s.ring[(s.count-1)%rememberedStates]
}

func (s *States) replaced() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restores
}

type remembered uint8

const (
	// notYet means that the state has not reached it.
	notYet remembered = iota
	// known means that the hash is known.
	known
	// gone means that the index is too old.
	gone
)

func (s *States) at(index uint64) (uint64, remembered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := min(s.count, rememberedStates)
	nth := func(i int) StateAt { return s.ring[(s.count-kept+uint64(i))%rememberedStates] }
	above := sort.Search(int(kept), func(i int) bool { return nth(i).Index > index })
	switch {
	case kept == 0 || above == int(kept) && nth(above-1).Index < index:
		return 0, notYet
	case above == 0:
		return 0, gone
	}
	return nth(above - 1).Hash, known
}
