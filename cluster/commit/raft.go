package commit

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Classify returns the meaning of an apply future's error for the entry. It returns nil and
// an *outcome.Error unchanged.
//
// Only an entry that Raft refuses before the append is NotApplied. hashicorp/raft returns
// ErrRaftShutdown before the append as well as after the commit, so it is Unknown here. An
// error that is not Raft's comes from the log store: the entry may be on disk, and be
// committed later.
func Classify(err error) *outcome.Error {
	var known *outcome.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return outcome.NewNotApplied(outcome.NotLeader, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return outcome.NewNotApplied(outcome.Overloaded, err)
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return outcome.NewUnknown(outcome.LeadershipLost, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return outcome.NewUnknown(outcome.Stopping, err)
	default:
		return outcome.NewUnknown(outcome.Storage, err)
	}
}

// Applier is the part of *raft.Raft that RaftLog uses.
type Applier interface {
	Apply(command []byte, timeout time.Duration) raft.ApplyFuture
}

// EnqueueTimeout is how long Raft's main loop may take to accept something. It accepts at once
// unless its disk hangs, and then the store's watchdog ends the process.
const EnqueueTimeout = 5 * time.Second

// RaftLog is a Log on hashicorp/raft. The state machine's Apply must return
// []raftlog.GroupResult, or an error.
type RaftLog struct{ Applier }

// Append implements Log. A goroutine waits for Raft's future; if Raft never resolves it,
// which happens at shutdown, the goroutine stays until the process ends.
func (l *RaftLog) Append(entry []byte) <-chan Appended {
	done := make(chan Appended, 1)
	go func() { done <- resolve(l.Apply(entry, EnqueueTimeout)) }()
	return done
}

// resolve waits for Raft's future. Error must be called before Response.
func resolve(f raft.ApplyFuture) Appended {
	if err := f.Error(); err != nil {
		return Appended{Err: classifyFuture(f, err)}
	}
	switch response := f.Response().(type) {
	case []raftlog.GroupResult:
		return Appended{Results: response}
	case error:
		// The state machine could not read its own log, and its node stops. The entry is
		// committed anyway.
		return Appended{Err: outcome.NewUnknown(outcome.Unspecified, response)}
	default:
		return Appended{Err: outcome.NewUnknown(outcome.Unspecified, errBadAnswer)}
	}
}

// classifyFuture is Classify for an apply future. An entry gets its index when it is
// appended, so an entry that fails without an index is in no log.
func classifyFuture(f raft.ApplyFuture, err error) *outcome.Error {
	if errors.Is(err, raft.ErrRaftShutdown) && f.Index() == 0 {
		return outcome.NewNotApplied(outcome.Stopping, err)
	}
	return Classify(err)
}
