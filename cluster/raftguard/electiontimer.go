package raftguard

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// electionWrites is how many writes of a term or vote an election timeout must hold:
	// the candidate's two, and a voter's two.
	electionWrites = 4
	// voteWrites are a voter's.
	voteWrites = 2
	// maxElectionTimeout bounds the timeout on a disk that takes ever longer.
	maxElectionTimeout = 16 * time.Second
	// voterTerms is the number of terms for which a voter that no longer answers counts with
	// its last answer. In the next term the quick voters answer first: without the slow voters
	// the timeout would be too short for the majority again.
	voterTerms = 2
)

// ElectionTimeout raises Raft's election timeout while the disks take long to write a term:
// this node's, or those of the voters that it asks. The library (v1.7.3, runCandidate) starts
// a candidate's timer before it has written its own term and vote: on disks that take 100 ms a
// write, each candidacy ended before its votes came, and a lost leader was never replaced. The
// heartbeat timeout stays, so that a leader is missed as soon as ever.
type ElectionTimeout struct {
	base time.Duration
	// refusePreVotes has pre-votes refused for a term, for some time.
	refusePreVotes func(term uint64, d time.Duration)
	log            *slog.Logger

	mu sync.Mutex
	// current is the timeout in force, base at least.
	current time.Duration
	// write is how long the last term took to write here, and vote the longest of the voters'
	// last answers.
	write, vote time.Duration
	voters      map[raft.ServerID]voter
	// voteTerm is the newest term in which a voter gave its vote.
	voteTerm uint64
	// raft is unset until the library runs.
	raft *raft.Raft
}

// voter is how long a voter took to answer last, and voteTerm then.
type voter struct {
	took time.Duration
	term uint64
}

// NewElectionTimeout returns base until a slow write is known.
func NewElectionTimeout(base time.Duration, refusePreVotes func(term uint64, d time.Duration), log *slog.Logger) *ElectionTimeout {
	return &ElectionTimeout{base: base, refusePreVotes: refusePreVotes, current: base, voters: map[raft.ServerID]voter{}, log: log}
}

// EnterTerm is called before a new term is written, and the returned function afterwards.
func (e *ElectionTimeout) EnterTerm(term uint64) (entered func()) {
	begin := time.Now()
	e.refusePreVotes(term, maxElectionTimeout)
	return func() { e.refusePreVotes(term, e.Written(time.Since(begin))) }
}

// Written records how long a write of a term, or of the same size, took, and returns the
// timeout.
func (e *ElectionTimeout) Written(took time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write = took
	e.follow()
	return e.current
}

// VoteAnswered records how long a voter took to answer a request for its vote, in a term that
// may be over. A refusal may take no writes, so it does not lower the time.
func (e *ElectionTimeout) VoteAnswered(id raft.ServerID, term uint64, took time.Duration, granted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if granted {
		e.voteTerm = max(e.voteTerm, term)
	} else {
		took = max(took, e.voters[id].took)
	}
	e.voters[id] = voter{took, e.voteTerm}
	e.vote = 0
	for other, v := range e.voters {
		if v.term+voterTerms < e.voteTerm {
			delete(e.voters, other)
		} else {
			e.vote = max(e.vote, v.took)
		}
	}
	e.follow()
}

// follow sets the timeout that is needed now. The caller holds mu.
func (e *ElectionTimeout) follow() {
	next := e.after(max(e.write, e.vote/voteWrites))
	if next == e.current {
		return
	}
	e.current = next
	e.log.Warn("the election timeout follows the time that a term and a vote take to write", "write", e.write, "vote", e.vote,
		"election_timeout", next)
	e.reload()
}

// Started tells that the library runs.
func (e *ElectionTimeout) Started(r *raft.Raft) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raft = r
	e.reload()
}

// reload has Raft use the timeout. The caller holds mu.
func (e *ElectionTimeout) reload() {
	if e.raft == nil {
		return
	}
	config := e.raft.ReloadableConfig()
	config.ElectionTimeout = e.current
	if err := e.raft.ReloadConfig(config); err != nil {
		e.log.Warn("the election timeout stays as it is", "error", err)
	}
}

// after returns the timeout after a write: as long as the write needs, or the current timeout if
// that is enough and less than twice as long.
func (e *ElectionTimeout) after(took time.Duration) time.Duration {
	need := max(e.base, min(electionWrites*took, maxElectionTimeout))
	if need <= e.current && e.current < 2*need {
		return e.current
	}
	return need
}
