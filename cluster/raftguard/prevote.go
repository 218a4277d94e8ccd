package raftguard

import (
	"sync/atomic"
	"time"
)

// PreVotes are the pre-votes that this node refuses, because of the newest term that Raft has
// written, or is writing. Raft enters a term to vote in it, for itself or another, and there is
// no second vote (§5.2); so a pre-vote would promise a vote that is not given (thesis 9.6). The
// library (v1.7.3) grants it: a node whose pre-vote arrived while another wrote its own term
// campaigned in the same term, and the two split the votes. On slow disks they did so again
// and again.
//
// Pre-votes for the next term are refused too, until the new leader is heard: a server that has
// given its vote waits for an election timeout (§5.2, figure 2, followers). Otherwise a
// candidate whose votes are in flight is deposed as soon as it leads.
//
// The refusal ends after some time: the vote of a node that entered the term without a vote may
// be needed, and a candidate of a newer term may be gone.
type PreVotes struct{ entered atomic.Pointer[enteredTerm] }

type enteredTerm struct {
	term  uint64
	until time.Time
}

// Enter refuses pre-votes for term and older terms for the time d.
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
