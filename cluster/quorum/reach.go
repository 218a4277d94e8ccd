package quorum

import (
	"sync"
	"time"
)

// Reach is whether a quorum is in reach. It is safe for concurrent use.
type Reach struct {
	mu      sync.Mutex
	present bool
	// since is when it last changed; at first, when the Reach was made.
	since   time.Time
	changed chan struct{}
}

// NewReach returns a Reach without a quorum.
func NewReach() *Reach {
	return &Reach{since: time.Now(), changed: make(chan struct{})}
}

func (s *Reach) set(present bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present == present {
		return false
	}
	s.present, s.since = present, time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// Present reports whether a quorum is in reach.
func (s *Reach) Present() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present
}

// Changed returns a channel that is closed at the next change of Present's result.
// Callers take it before they call Present, so that no change is missed.
func (s *Reach) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Missing returns for how long no quorum has been in reach; 0 if a quorum is.
func (s *Reach) Missing() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.present {
		return 0
	}
	return time.Since(s.since)
}
