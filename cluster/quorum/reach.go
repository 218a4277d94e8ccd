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

func (r *Reach) set(present bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.present == present {
		return false
	}
	r.present, r.since = present, time.Now()
	close(r.changed)
	r.changed = make(chan struct{})
	return true
}

// Present reports whether a quorum is in reach.
func (r *Reach) Present() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.present
}

// Changed returns a channel that is closed at the next change of Present's result.
// Callers take it before they call Present, so that no change is missed.
func (r *Reach) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Missing returns for how long no quorum has been in reach; 0 if a quorum is.
func (r *Reach) Missing() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.present {
		return 0
	}
	return time.Since(r.since)
}
