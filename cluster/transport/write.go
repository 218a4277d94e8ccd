package transport

import "github.com/hashicorp/raft"

// Writing records that Raft writes entries to the log, the newest of which has this term; 0
// means that the write has ended. Raft's main goroutine calls it.
//
// That goroutine answers nothing else meanwhile, so the leader's empty heartbeats are
// answered here: a leader that needs this node for a quorum would lose its lease at each slow
// write, and the next leader would too. The storage watchdog bounds a write, and a leader
// whose entries are not acknowledged steps down.
func (t *Transport) Writing(term uint64) { t.inbound.writing.Store(term) }

// writes reports whether a heartbeat is from the leader whose entries are being written.
//
// Invariant: a heartbeat of a term is answered only while Raft's current term is that term,
// and Raft follows its sender. The entries in flight are of the term, and no request of a
// newer term was seen; so they come from the leader of that term, since a request of a newer
// leader would have been seen. Raft has that term on its disk before it writes the entries,
// and its term cannot change before the write has ended.
func (i *inbound) writes(r *raft.AppendEntriesRequest) bool {
	term := i.writing.Load()
	return term > 0 && term == r.Term
}
