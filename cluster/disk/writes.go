package disk

import (
	"log/slog"
	"sync"
	"time"
)

// slowHold is for how long a disk counts as slow after a slow write has ended, so that
// a node whose disk is slow again and again does not get leadership back in between.
const slowHold = 10 * time.Second

// Writes knows whether a write to this node's disk is slow, or was lately.
type Writes struct {
	log *slog.Logger
	// wake gets a value when a write becomes slow.
	wake chan struct{}

	mu sync.Mutex
	// writes are the slow writes in flight.
	writes int
	// until is when the disk no longer counts as slow, if no write is.
	until time.Time
}

// NewWrites returns a Writes without a slow write.
func NewWrites(log *slog.Logger) *Writes {
	return &Writes{log: log, wake: make(chan struct{}, 1)}
}

// TakeIn records that a write is slow, or that a slow write has ended.
func (d *Writes) TakeIn(slow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !slow {
		d.writes--
		d.until = now.Add(slowHold)
		return
	}
	if d.writes == 0 && now.After(d.until) {
		d.log.Warn("a write to the disk is slow: this node does not get leadership", "hold", slowHold)
	}
	d.writes++
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// BecameSlow returns a channel that gets a value when a write becomes slow.
func (d *Writes) BecameSlow() <-chan struct{} { return d.wake }

// Hang reports whether a write is slow now.
func (d *Writes) Hang() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes > 0
}

// Slow reports whether a write is slow, or was less than slowHold before now.
func (d *Writes) Slow(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes > 0 || now.Before(d.until)
}
