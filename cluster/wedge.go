package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// wedgeLimit is how long a leader may refuse everything because it is handing
// over its office. A handover is bounded by the election timeout; but one that
// is interrupted leaves a mark behind, and a leader elected again with that mark
// refuses for ever (hashicorp/raft issue 696). Only a new process gets rid of it.
const wedgeLimit = 10 * time.Second

// wedge notices a leader that refuses everything for too long.
type wedge struct {
	limit time.Duration
	fatal func(error)
	mu    sync.Mutex
	// since is when the refusals began; zero after anything else than one.
	since time.Time
}

// saw takes note of what Raft said to a proposal.
func (w *wedge) saw(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		w.since = time.Time{}
		return
	}
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	if now.Sub(w.since) > w.limit {
		w.fatal(fmt.Errorf("cluster: the leader has refused everything for %v because of a handover that does not end: %w", w.limit, err))
	}
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
