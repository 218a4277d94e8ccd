package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// EnterTerm refuses pre-votes for a term that Raft enters, and for older ones, for some time:
// see raftguard.PreVotes.
func (t *Transport) EnterTerm(term uint64, d time.Duration) { t.inbound.preVotes.Enter(term, d) }

// voteLeft reports whether Raft gets a pre-vote: it is refused here if this node votes for
// another in its term, or in the one before it.
func (i *inbound) voteLeft(rpc raft.RPC, r *raft.RequestPreVoteRequest) bool {
	if !i.preVotes.Refuses(r.Term, i.led.Load()) {
		return true
	}
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: r.Term}, nil)
	return false
}
