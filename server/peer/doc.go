// Package peer is the calls between nodes, over gRPC: groups to the leader, read
// indexes, pings, and what it takes to get into a cluster.
//
// It owns the server for these calls, the rule who may make them, and the pool
// of connections to other nodes with the stream that carries groups. What the
// calls mean is the node's business, which it reaches through an interface.
//
// Every call introduces its caller in metadata: Raft id, cluster and tag. A call
// that belongs to a cluster is taken only from a present member of it; with TLS
// the caller's certificate must also name the member's tag, because a
// certificate that is merely signed by the right authority may belong to a
// client, or to another node.
package peer
