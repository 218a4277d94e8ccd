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

// wedgeLimit is how long a leader may refuse everything because it is handing
// over leadership. A handover is bounded by the election timeout; but one that
// is interrupted leaves a mark behind, and a leader elected again with that mark
// refuses for ever (hashicorp/raft issue 696). Only a new process gets rid of it.
const wedgeLimit = 10 * time.Second

// wedgeProbe is how often a leader that refused is tried again, whether anybody
// proposes something or not; wedgeGap is how far apart two refusals may be and
// still belong to one transfer.
const (
	wedgeProbe = time.Second
	wedgeGap   = 3 * wedgeProbe
)

// wedge notices a leader that refuses everything for too long.
//
// Invariant: since and last are of the present leadership.
type wedge struct {
	limit time.Duration
	fatal func(error)
	mu    sync.Mutex
	// since is when the refusals began; zero after anything else than one. last
	// is the newest.
	since, last time.Time
}

// saw records Raft's answer to a proposal.
func (w *wedge) saw(err error) {
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
	if w.since.IsZero() || now.Sub(w.last) > wedgeGap {
		w.since = now
	}
	w.last = now
	if now.Sub(w.since) > w.limit {
		w.fatal(fmt.Errorf("cluster: the leader has refused everything for %v because of a handover that does not end: %w", w.limit, err))
	}
}

// reset begins a new leadership.
func (w *wedge) reset() { w.saw(nil) }

// refuses says whether the newest answer was a refusal.
func (w *wedge) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.since.IsZero()
}

// probe asks Raft again every second while its newest answer is a refusal, until ctx
// ends. So a transfer is judged by how long it lasts, also where nobody proposes
// anything meanwhile.
func (w *wedge) probe(ctx context.Context, ask func() error) {
	for ctx.Err() == nil {
		if w.refuses() {
			w.saw(ask())
		}
		sleep(ctx, wedgeProbe)
	}
}

// askRaft asks for a change of a configuration that does not exist. Raft refuses
// that without writing anything; during a transfer it refuses because of that. A
// barrier will not do: reads rely on a leader's first being its last.
func (e *engine) askRaft() error {
	return configurator{e}.await(func() raft.IndexFuture {
		return e.raft.RemoveServer("", math.MaxUint64, wedgeProbe)
	})
}

// watchedRaft is Raft with an eye on what it answers.
type watchedRaft struct {
	raft  *raft.Raft
	wedge *wedge
}

// Apply implements commit.Applier.
func (r watchedRaft) Apply(command []byte, timeout time.Duration) raft.ApplyFuture {
	return watchedFuture{r.raft.Apply(command, timeout), r.wedge}
}

type watchedFuture struct {
	raft.ApplyFuture
	wedge *wedge
}

// Error implements raft.Future.
func (f watchedFuture) Error() error {
	err := f.ApplyFuture.Error()
	f.wedge.saw(err)
	return err
}
