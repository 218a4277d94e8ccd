// Package model is what may happen in a cluster: the steps of Raft's members, of the
// sessions in the replicated state, of HiLo ranges, members' tags and a node's etags, and
// when each may be taken. It knows no product code but the form of the log's entries.
//
// Member, MayVote, MayCommit and Sessions are the relation. test/exploration takes every
// step that they allow. Cluster joins them with Etags, Ranges and Tags for test/simulation,
// which tells it each step that whole nodes take: a step that is not allowed is an error.
package model
