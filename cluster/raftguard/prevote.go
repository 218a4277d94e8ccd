package raftguard

import (
	"sync/atomic"
	"time"
)

// PreVotes are the pre-votes that this node refuses, because of the newest term that Raft has
// written, or is writing. Raft enters a term to vote in it, for itself or another, and there
// is no second vote (§5.2); so a pre-vote tells that it would not be given (thesis 9.6). The
// library (v1.7.3) gives one: a node whose pre-vote came while the other wrote its own term
// campaigned in the same term, and the two split the votes. On slow disks they did so again
// and again.
//
// Nor is there one for the next term, until the new leader is heard: a server that has given
// its vote waits for an election timeout (§5.2, figure 2, followers). Otherwise a candidate
// whose votes are on the way to it is deposed as soon as it leads.
//
// Not for ever: a node that entered the term without a vote may be the one whose vote is
// needed, and a candidate of a newer term may be gone.
type PreVotes struct{ entered atomic.Pointer[enteredTerm] }

type enteredTerm struct {
	term  uint64
	until time.Time
}

// Enter refuses pre-votes for a term, and for older ones, for some time.
func (p *PreVotes) Enter(term uint64, d time.Duration) {
	p.entered.Store(&enteredTerm{term, time.Now().Add(d)})
}

// Refuses reports whether a pre-vote for a term is refused. led is the newest term of which a
// leader was heard.
func (p *PreVotes) Refuses(term, led uint64) bool {
	e := p.entered.Load()
	if e == nil || !time.Now().Before(e.until) {
		return false
	}
	if led < e.term {
		return term <= e.term+1
	}
	return term <= e.term
}
