// Package peer has the calls between nodes, over gRPC: what members say to each other, and what a
// node asks before it is a member.
//
// The package owns the servers of both, and the pool of connections to other nodes with the
// stream that carries groups. It does not own the meaning of the calls: the node's interface
// has it.
//
// Members call each other over connections of the Raft port. Their handshake has proved who the
// caller is (package transport), and the connection's remote address is the caller's Raft id. Whether
// the caller is a member still is checked for each call and each group. Hello and Join come
// before membership, over the gRPC port: with TLS the caller's certificate must name the tag
// that it states, because a certificate signed by the right authority may belong to a client.
package peer
