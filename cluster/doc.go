// Package cluster is one Raft node.
//
// It owns the node's membership of its cluster: the data directory and the identity in
// it, the first start, joining and leaving, Raft with its log, transport and snapshots,
// leadership and a leader's work, proposals and their forwarding, linearizable reads, and
// whether a quorum can be reached. It knows nothing of ids: operations and results are
// opaque bytes, the state machine and the connections to other nodes are interfaces
// declared here.
//
// In it, starter finds the place in a cluster, and engine is what runs once there is one:
// quorumWatch tells who leads and whether a quorum is in reach, memberWatch follows the
// table of members, memberPinger asks the others for their condition, leadership does a
// leader's work, leaderTransfer transfers leadership, membership changes the table, and
// voterCheck says whether enough voters answer. PeerSide answers the calls of other nodes.
//
// A Node is opened, started once, and shut down once. When it cannot go on (a damaged
// store, a stalled disk, a state machine that does not understand its log, its own
// removal) it ends by itself: Done is closed, Err says why, and the process is expected
// to exit, because such a node must neither vote nor answer.
package cluster
