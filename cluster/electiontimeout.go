package cluster

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// electionWrites is how many writes of a term or vote an election timeout must hold:
	// the candidate's term, then a voter's term and vote, and one to spare.
	electionWrites = 4
	// maxElectionTimeout bounds the timeout on a disk that takes ever longer.
	maxElectionTimeout = 16 * time.Second
)

// electionTimeout raises Raft's election timeout while this node's disk takes long to write
// a term. The library (v1.7.3, runCandidate) starts a candidate's timer before it has
// written its own term and vote: on disks that take 100 ms a write, each candidacy ended
// before its votes came, and a lost leader was never replaced. The heartbeat timeout stays,
// so that a leader is missed as soon as ever.
type electionTimeout struct {
	// current is the one in force, base at least; it belongs to Raft's main goroutine.
	base, current time.Duration
	log           *slog.Logger
	// raft is unset until the library runs.
	raft atomic.Pointer[raft.Raft]
}

func newElectionTimeout(base time.Duration, log *slog.Logger) *electionTimeout {
	return &electionTimeout{base: base, current: base, log: log}
}

// termWritten takes in how long a term took to write.
func (e *electionTimeout) termWritten(took time.Duration) {
	library, next := e.raft.Load(), e.after(took)
	if library == nil || next == e.current {
		return
	}
	config := library.ReloadableConfig()
	config.ElectionTimeout = next
	if err := library.ReloadConfig(config); err != nil {
		e.log.Warn("the election timeout stays as it is", "error", err)
		return
	}
	e.current = next
	e.log.Warn("the election timeout follows the time that a term takes to write", "write", took, "election_timeout", next)
}

// after returns the timeout after a write: what that needs, or the current one where that is
// enough and less than twice as long.
func (e *electionTimeout) after(took time.Duration) time.Duration {
	need := max(e.base, min(electionWrites*took, maxElectionTimeout))
	if need <= e.current && e.current < 2*need {
		return e.current
	}
	return need
}
