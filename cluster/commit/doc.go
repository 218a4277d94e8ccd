// Package commit is group commit: it turns many callers' operations into few log entries,
// and reports the true outcome of each.
//
//	callers ──Propose──▶ Gatherer ──group──▶ Sender ──▶ Batcher ──entry──▶ Log
//	        (every node, origin side)      (this node or    (the leader)
//	                                        a peer stream)
//
// The package owns the queues between a caller and the log: the Gatherer's, in which this
// node's operations wait for a group, and the Batcher's, in which the groups of all nodes
// wait for an entry. It does not own the transport between nodes, leader election, or the
// meaning of an operation: operations and results are opaque bytes here.
//
// # Why a lone caller does not wait
//
// A fixed wait delays a lone caller and is still too short for a busy node. Instead the
// group in flight is the wait: while it is replicated, the next group fills. A lone caller
// finds no group in flight and is sent at once; a thousand callers fill groups as large as
// one round trip allows. One group and one entry are in flight at a time: a
// second would only split the same callers over two fsyncs, and the disk is the bottleneck,
// not the pipeline. It also bounds the unknown outcomes when a leader fails.
//
// # Why a group is applied once
//
// Invariant: a pair (session, sequence) names one content permanently. A sequence number
// is never given to a second group, even if the first certainly never reached a log. So
// the state machine may answer a repeated group with the results of the first, and a
// group whose outcome is unknown can be sent to the next leader, byte for byte, until
// there is an answer (Raft paper, section 8: client serial numbers).
//
// Invariant: a sequence number is acknowledged only when its group is settled: answered,
// or given up. The state machine then forgets the results, and refuses any late copy of
// the group.
//
// # Why an outcome can be believed
//
// Invariant: NotApplied is returned only for an operation that is in no group, or whose
// group was refused in every attempt with the guarantee that no log has it. One attempt
// without an answer taints the group: from then on only an answer or Unknown ends its
// callers' wait.
//
// Every wait is bounded: by the caller's context, by the loss of the quorum,
// by LeaderWait without a leader, by GiveUp with a leader that does not
// answer, and by Close.
package commit
