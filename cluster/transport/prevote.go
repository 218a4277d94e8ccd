package transport

import (
	"time"

	"github.com/hashicorp/raft"
)

// EnterTerm refuses pre-votes for term and older terms for the time d: Raft enters the term.
// See raftguard.PreVotes.
func (t *Transport) EnterTerm(term uint64, d time.Duration) { t.inbound.preVotes.Enter(term, d) }

// voteLeft reports whether Raft gets a pre-vote. It is refused here if this node votes for
// another node in its term, or in the term before.
func (i *inbound) voteLeft(rpc raft.RPC, r *raft.RequestPreVoteRequest) bool {
	if !i.preVotes.Refuses(r.Term, i.led.Load()) {
		return true
	}
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: r.Term}, nil)
	return false
}
