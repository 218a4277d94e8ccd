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
// Not for ever: a node that entered the term without a vote may be the one whose vote is
// needed, and a candidate of a newer term may be gone.
func (t *Transport) EnterTerm(term uint64, d time.Duration) {
	t.inbound.entered.Store(&enteredTerm{term, time.Now().Add(d)})
}

// voteLeft reports whether Raft gets a pre-vote: it is refused here if this node votes for
// another in its term.
func (i *inbound) voteLeft(rpc raft.RPC, r *raft.RequestPreVoteRequest) bool {
	e := i.entered.Load()
	if e == nil || r.Term > e.term || !time.Now().Before(e.until) {
		return true
	}
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: r.Term}, nil)
	return false
}
