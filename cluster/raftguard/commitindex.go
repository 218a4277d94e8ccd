package raftguard

import "github.com/hashicorp/raft"

// ProvenCommit returns how far a request proves to its receiver that the receiver's own
// log is committed. The Raft paper says in figure 2, AppendEntries RPC, receiver
// implementation, 5: "If leaderCommit > commitIndex, set commitIndex = min(leaderCommit,
// index of last new entry)". The library (v1.7.3) takes the index of the last entry in
// the receiver's log instead, which an earlier leader may have written there alone.
//
// A commit index that a request does not prove arrives with a later request: a leader sends a
// request at least every commit timeout, and a request without new entries names the end of
// its log.
func ProvenCommit(r *raft.AppendEntriesRequest) uint64 {
	return min(r.LeaderCommitIndex, r.PrevLogEntry+uint64(len(r.Entries)))
}
