package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// enteredTerm is the newest term that Raft has written, or is writing.
type enteredTerm struct {
	term  uint64
	until time.Time
}

// EnterTerm refuses pre-votes for a term, and for older ones, for some time. Raft enters a
// term to vote in it, for itself or another, and there is no second vote (§5.2); so a
// pre-vote tells that it would not be given (thesis 9.6). The library (v1.7.3) gives one: a
// node whose pre-vote came while the other wrote its own term stood in the same term, and
// the two split the votes. On slow disks they did so again and again.
//
// Nor is there one for the next term, until the new leader is heard: a server that has given
// its vote waits for an election timeout (§5.2, figure 2, followers). Otherwise a candidate
// whose votes are on the way to it is deposed as soon as it leads.
//
// Not for ever: a node that entered the term without a vote may be the one whose vote is
// needed, and a candidate of a newer term may be gone.
func (t *Transport) EnterTerm(term uint64, d time.Duration) {
	t.inbound.entered.Store(&enteredTerm{term, time.Now().Add(d)})
}

// voteLeft reports whether Raft gets a pre-vote: it is refused here if this node votes for
// another in its term, or in the one before it.
func (i *inbound) voteLeft(rpc raft.RPC, r *raft.RequestPreVoteRequest) bool {
	e := i.entered.Load()
	if e == nil || r.Term > i.refused(e.term) || !time.Now().Before(e.until) {
		return true
	}
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: r.Term}, nil)
	return false
}

// refused returns the newest term for which no pre-vote is given once a term was entered.
func (i *inbound) refused(entered uint64) uint64 {
	if i.led.Load() < entered {
		return entered + 1
	}
	return entered
}
