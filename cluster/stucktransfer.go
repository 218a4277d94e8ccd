package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stuckTransferLimit is how long a leader may refuse everything because of a leadership
// transfer. A transfer is bounded by the election timeout; but an interrupted one leaves
// a flag behind, and a leader elected again with that flag refuses permanently
// (hashicorp/raft issue 696). Only a new process clears it.
const stuckTransferLimit = 10 * time.Second

// stuckTransferProbe is how often a leader that refused is probed, with or without
// proposals; stuckTransferGap is how far apart two refusals of one transfer may be.
const (
	stuckTransferProbe = time.Second
	stuckTransferGap   = 3 * stuckTransferProbe
)

// stuckTransfer notices a leader that refuses everything for too long.
//
// Invariant: since and last are of the current leadership.
type stuckTransfer struct {
	limit time.Duration
	fatal func(error)
	mu    sync.Mutex
	// since is when the refusals began; zero after any other answer. last is the newest.
	since, last time.Time
}

// saw records Raft's answer to a proposal.
func (w *stuckTransfer) saw(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return // Raft has not answered.
	case !errors.Is(err, raft.ErrLeadershipTransferInProgress):
		w.since = time.Time{}
		return
	}
	now := time.Now()
	if w.since.IsZero() || now.Sub(w.last) > stuckTransferGap {
		w.since = now
	}
	w.last = now
	if now.Sub(w.since) > w.limit {
		w.fatal(fmt.Errorf("cluster: the leader has refused everything for %v because of a leadership transfer that does not end: %w", w.limit, err))
	}
}

// reset begins a new leadership.
func (w *stuckTransfer) reset() { w.saw(nil) }

// refuses reports whether the newest answer was a refusal.
func (w *stuckTransfer) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.since.IsZero()
}

// probe asks Raft again every second while its newest answer is a refusal, until ctx
// ends. So a stuck transfer is found even without proposals.
func (w *stuckTransfer) probe(ctx context.Context, ask func() error) {
	for ctx.Err() == nil {
		if w.refuses() {
			w.saw(ask())
		}
		sleep(ctx, stuckTransferProbe)
	}
}

// watchedRaft reports Raft's answers to stuckTransfer.
type watchedRaft struct {
	raft          *raft.Raft
	stuckTransfer *stuckTransfer
}

// Apply implements commit.Applier.
func (r watchedRaft) Apply(command []byte, timeout time.Duration) raft.ApplyFuture {
	return watchedFuture{r.raft.Apply(command, timeout), r.stuckTransfer}
}

type watchedFuture struct {
	raft.ApplyFuture
	stuckTransfer *stuckTransfer
}

// Error implements raft.Future.
func (f watchedFuture) Error() error {
	err := f.ApplyFuture.Error()
	f.stuckTransfer.saw(err)
	return err
}
