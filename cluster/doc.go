// Package cluster is one Raft node.
//
// It opens, starts and stops the node, and connects its packages: what the node knows of the
// others (peers), what it does as the leader (leader), the first start and the identity in the
// data directory (member), Raft behind guards against its defects (raftguard), with its
// transport and store. Proposals, their forwarding and linearizable reads pass through it.
//
// Callers' operations and results are opaque bytes: the package knows nothing of ids. Of the
// state's operations it knows those on members, which it proposes itself: forming the cluster,
// a node's announcement at its start, additions, removals, votes and the log format. The state
// machine and the connections to other nodes are interfaces declared here.
//
// In the package, engine runs once the node has its place in a cluster; quorumWatch reports who
// leads and whether a quorum is in reach, announcer announces the node, and sender sends groups
// to the leader. PeerSide answers the calls of other nodes.
//
// A Node is opened, started once, and shut down once. When it cannot go on (a damaged
// store, a stalled disk, a state machine that does not understand its log, its own
// removal) it ends by itself: Done is closed, Err says why, and the process is expected
// to exit, because such a node must neither vote nor answer.
package cluster
