package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stuckTransferLimit is how long a leader may refuse everything because it is handing
// over leadership. A handover is bounded by the election timeout; but one that
// is interrupted leaves a mark behind, and a leader elected again with that mark
// refuses for ever (hashicorp/raft issue 696). Only a new process gets rid of it.
const stuckTransferLimit = 10 * time.Second

// stuckTransferProbe is how often a leader that refused is tried again, whether anybody
// proposes something or not; stuckTransferGap is how far apart two refusals may be and
// still belong to one transfer.
const (
	stuckTransferProbe = time.Second
	stuckTransferGap   = 3 * stuckTransferProbe
)

// stuckTransfer notices a leader that refuses everything for too long.
//
// Invariant: since and last are of the present leadership.
type stuckTransfer struct {
	limit time.Duration
	fatal func(error)
	mu    sync.Mutex
	// since is when the refusals began; zero after anything else than one. last
	// is the newest.
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
		w.fatal(fmt.Errorf("cluster: the leader has refused everything for %v because of a handover that does not end: %w", w.limit, err))
	}
}

// reset begins a new leadership.
func (w *stuckTransfer) reset() { w.saw(nil) }

// refuses says whether the newest answer was a refusal.
func (w *stuckTransfer) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.since.IsZero()
}

// probe asks Raft again every second while its newest answer is a refusal, until ctx
// ends. So a transfer is judged by how long it lasts, also where nobody proposes
// anything meanwhile.
func (w *stuckTransfer) probe(ctx context.Context, ask func() error) {
	for ctx.Err() == nil {
		if w.refuses() {
			w.saw(ask())
		}
		sleep(ctx, stuckTransferProbe)
	}
}

// askRaft asks for a change of a configuration that does not exist. Raft refuses
// that without writing anything; during a transfer it refuses because of that. A
// barrier will not do: reads rely on a leader's first being its last.
func (e *engine) askRaft() error {
	return configurator{e}.await(func() raft.IndexFuture {
		return e.raft.RemoveServer("", math.MaxUint64, stuckTransferProbe)
	})
}

// watchedRaft is Raft with an eye on what it answers.
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
