// Package peer has the calls between nodes, over gRPC: groups to the leader, read indexes,
// pings, and the calls of a node that joins.
//
// The package owns the server for these calls, the rule who may make them, and the pool of
// connections to other nodes with the stream that carries groups. It does not own the
// meaning of the calls: the node's interface has it.
//
// Every call introduces its caller in metadata: Raft id, cluster and tag. A call that
// belongs to a cluster is accepted only from a present member of it; with TLS the caller's
// certificate must also name the member's tag, because a certificate signed by the right
// authority may belong to a client, or to another node.
package peer
