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
	// a node whose disk is slow again and again does not get leadership back in between.
	slowHold = 10 * time.Second
	// slowTick is how often a leader whose disk hangs looks for a voter to elect.
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

// watchSlowDisk has another voter elected while a write of this leader hangs, until ctx
// or the leadership ends. If that cannot help, or did not in an earlier leadership on this
// slow disk, this node leads on: an election that nobody wins costs more than slow writes.
//
// Raft's main goroutine waits for the write, so it can transfer nothing; and it would lead
// on, because its heartbeats come from other goroutines. So the voter gets the last step of
// a transfer alone, the TimeoutNow request.
func (t *leaderTransfer) watchSlowDisk(ctx context.Context) {
	term := t.raft.CurrentTerm()
	for ctx.Err() == nil && t.raft.State() == raft.Leader && !t.replaced(term) {
		switch inVain := t.toldIn != 0 && t.toldIn != term && !t.replaced(t.toldIn); {
		case !t.disk.slow(time.Now()):
			t.toldIn = 0
		case t.disk.hangs() && !inVain && t.majorityWithoutSelf():
			t.sendTimeoutNow(ctx, term)
		}
		select {
		case <-t.disk.wake:
		case <-time.After(slowTick):
		case <-ctx.Done():
		}
	}
}

// replaced reports whether the leader of a newer term has sent a request.
func (t *leaderTransfer) replaced(term uint64) bool {
	newest, _ := t.transport.Leader()
	return newest > term
}

// majorityWithoutSelf reports whether the other voters whose disks are not slow are a
// majority. No fewer can elect a leader: they lack the entry that this node writes, so that
// it refuses them its vote (§5.4.1).
func (t *leaderTransfer) majorityWithoutSelf() bool {
	quick := 0
	for _, target := range t.targets() {
		if !target.slow {
			quick++
		}
	}
	return quick > len(t.configuration.voters())/2
}

// sendTimeoutNow has the best target campaign, and gives it time to lead.
func (t *leaderTransfer) sendTimeoutNow(ctx context.Context, term uint64) {
	best, found, _ := bestTarget(t.targets())
	if !found {
		return
	}
	t.attempts.add(best.server.ID)
	t.log.Warn("a write to this leader's disk hangs: telling another voter to campaign", "to", best.server.ID)
	ctx, cancel := context.WithTimeout(ctx, 2*t.election)
	defer cancel()
	if err := t.transport.SendTimeoutNow(ctx, best.server.ID); err != nil {
		t.log.Warn("the voter did not campaign", "error", err)
		return
	}
	t.toldIn = term
	for ctx.Err() == nil && !t.replaced(term) {
		sleep(ctx, slowTick/10)
	}
}
