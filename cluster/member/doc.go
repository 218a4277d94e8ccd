// Package member decides which node this is, and which nodes are in the cluster.
//
// The package owns the identity of a data directory (node.json: the node's random Raft id,
// its tag, its cluster), the flows by which a node without a cluster gets into a cluster
// (first start, join), and the check, by the nodes that its settings list, whether it is of its
// callers' cluster.
//
// It does not own the table of members, which is replicated state, nor any connection: it
// reaches other nodes and Raft through small interfaces.
package member
