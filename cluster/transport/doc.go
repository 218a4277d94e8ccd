// Package transport carries Raft's messages between nodes over TCP, with or without TLS,
// and admits members only.
//
// The package owns the Raft port: the listener, every connection dialled or accepted, and
// the handshake that opens each connection. The messages are the library's
// (raft.NetworkTransport), with one change: heartbeats are handled like all other messages
// (see Transport.SetHeartbeatHandler).
//
// Nodes are identified by ids, never by addresses. To Raft a server's address is its id;
// the Directory gives the id's address at each dial. So a vote is given to an id, and a
// node at the address of another is refused; with addresses as identity, two nodes that
// swapped theirs could both get one vote in one term. Both ends of a connection first
// send their cluster, their id and the wanted id, and nothing else is read before the
// check. With TLS each certificate must name the tag of its member; the right authority's
// signature is not enough.
//
// Without TLS the handshake is no protection against an attacker on the network: it
// separates nodes that are misconfigured, copied or wiped.
//
// The package does not own the table of members. It reports refusals; the reaction of a refused
// node is decided elsewhere.
package transport
