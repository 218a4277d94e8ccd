// Package fsm is the replicated state of a cluster: identities, HiLo counters, claims, members,
// sessions, remembered request ids, settings and each node's etags. It applies operations and
// returns their results, has snapshots, and a hash by which nodes compare states.
//
// It uses no Raft, networks or disks, and neither reads a clock nor draws random numbers.
//
// Invariant: the state, its hash and every result are a function of the log entries alone. A
// leader's decisions, such as the time, are in the entry; no map is iterated where the order could
// show.
//
// Invariant: a refused operation leaves the state unchanged, except as handler says, and does not
// affect the other operations of its entry. Each handler checks everything before it changes
// anything.
//
// A change of an operation's effect, or of any bound or default in this package, is a new log
// format: nodes of two releases apply the same entries.
package fsm
