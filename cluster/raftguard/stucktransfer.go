package raftguard

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stuckTransferLimit is how long a leader may refuse all proposals because of a leadership
// transfer. A transfer is bounded by the election timeout; but an interrupted transfer leaves
// a flag behind, and a leader elected again with that flag refuses permanently (hashicorp/raft
// issue 696). Only a new process clears it.
const stuckTransferLimit = 10 * time.Second

// StuckTransferProbe is how often a leader that refused is probed, with or without
// proposals; stuckTransferGap is how far apart two refusals of one transfer may be.
const (
	StuckTransferProbe = time.Second
	stuckTransferGap   = 3 * StuckTransferProbe
)

// StuckTransfer notices a leader that refuses everything for too long.
//
// Invariant: since and last are of the current leadership.
type StuckTransfer struct {
	fatal func(error)
	mu    sync.Mutex
	// since is when the refusals began; zero after any other answer. last is the newest.
	since, last time.Time
}

// NewStuckTransfer returns a StuckTransfer that ends the node with fatal.
func NewStuckTransfer(fatal func(error)) *StuckTransfer { return &StuckTransfer{fatal: fatal} }

// Saw records Raft's answer to a proposal.
func (w *StuckTransfer) Saw(err error) {
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
	if now.Sub(w.since) > stuckTransferLimit {
		w.fatal(fmt.Errorf("cluster: the leader has refused everything for %v because of a leadership transfer that does not end: %w",
			stuckTransferLimit, err))
	}
}

// Reset begins a new leadership.
func (w *StuckTransfer) Reset() { w.Saw(nil) }

// Refuses reports whether the newest answer was a refusal. Then Raft must be asked again every
// StuckTransferProbe.
func (w *StuckTransfer) Refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.since.IsZero()
}

// Watch returns a Raft whose answers to proposals are recorded.
func (w *StuckTransfer) Watch(r *raft.Raft) watchedRaft { return watchedRaft{r, w} }

type watchedRaft struct {
	raft          *raft.Raft
	stuckTransfer *StuckTransfer
}

func (r watchedRaft) Apply(command []byte, timeout time.Duration) raft.ApplyFuture {
	return watchedFuture{r.raft.Apply(command, timeout), r.stuckTransfer}
}

type watchedFuture struct {
	raft.ApplyFuture
	stuckTransfer *StuckTransfer
}

func (f watchedFuture) Error() error {
	err := f.ApplyFuture.Error()
	f.stuckTransfer.Saw(err)
	return err
}
