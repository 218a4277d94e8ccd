// Package fsm is the replicated state of a cluster: identities, HiLo counters, claims,
// members, sessions, remembered request ids, settings and each node's etags. It turns
// operations into results, has snapshots, and a hash by which nodes compare states.
//
// It knows nothing of Raft, networks or disks, and neither reads a clock nor
// draws random numbers.
//
// Invariant: the state, its hash and every result are a function of the log
// entries alone. What a leader decides, such as the time, is in the entry; no
// map is iterated where the order could show.
//
// Invariant: an operation that is refused has changed nothing, and leaves the
// others of its entry alone. Each handler checks everything before it changes
// anything.
//
// A change of what an operation does, or of any bound or default in this
// package, is a new log format: nodes of two releases apply the same entries.
package fsm
