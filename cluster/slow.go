package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// slowHold is for how long a disk counts as slow after a slow write has ended, so that
	// a disk that is slow again and again does not get leadership back in between.
	slowHold = 10 * time.Second
	// slowTick is how often a leader whose disk hangs looks for a voter to take over.
	slowTick = 50 * time.Millisecond
)

// slowDisk knows whether a write to this node's disk is slow, or was lately.
type slowDisk struct {
	log *slog.Logger
	// wake gets a value when a write becomes slow.
	wake chan struct{}

	mu sync.Mutex
	// writes are the slow writes in flight.
	writes int
	// until is when the disk no longer counts as slow, if no write is.
	until time.Time
}

func newSlowDisk(log *slog.Logger) *slowDisk {
	return &slowDisk{log: log, wake: make(chan struct{}, 1)}
}

// slowed takes in that a write is slow, or that a slow one has ended.
func (d *slowDisk) slowed(slow bool) {
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

// hangs reports whether a write is slow now.
func (d *slowDisk) hangs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes > 0
}

// slow reports whether a write is slow, or was less than slowHold before now.
func (d *slowDisk) slow(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes > 0 || now.Before(d.until)
}

// leaveSlowDisk has another voter elected while a write of this leader hangs, until ctx
// or the leadership ends. If no voter is fit, as when all disks are slow, this node
// leads on.
//
// Raft's main goroutine waits for the write, so it can transfer nothing; and it would lead
// on, because its heartbeats come from other goroutines. So the voter is told directly.
func (h *handover) leaveSlowDisk(ctx context.Context) {
	term := h.raft.CurrentTerm()
	for ctx.Err() == nil && h.raft.State() == raft.Leader && !h.succeeded(term) {
		if h.disk.hangs() {
			h.callElection(ctx, term)
		}
		select {
		case <-h.disk.wake:
		case <-time.After(slowTick):
		case <-ctx.Done():
		}
	}
}

// succeeded reports whether another node has been heard of as the leader of a newer term.
func (h *handover) succeeded(term uint64) bool {
	newest, _ := h.transport.Leader()
	return newest > term
}

// callElection tells the fittest voter to stand for election, and gives it time to lead.
func (h *handover) callElection(ctx context.Context, term uint64) {
	best, found, _ := fittest(h.candidates())
	if !found {
		return
	}
	h.offers.made(best.server.ID)
	h.log.Warn("a write to this leader's disk hangs: another node is told to stand for election", "to", best.server.ID)
	ctx, cancel := context.WithTimeout(ctx, 2*h.election)
	defer cancel()
	if err := h.transport.CallElection(ctx, best.server.ID); err != nil {
		h.log.Warn("no election was called", "error", err)
		return
	}
	for ctx.Err() == nil && !h.succeeded(term) {
		sleep(ctx, slowTick/10)
	}
}
