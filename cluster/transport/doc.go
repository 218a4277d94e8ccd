// Package transport carries Raft's messages between nodes over TCP, with TLS or
// without, and lets nobody in who is not a member.
//
// It owns the Raft port: the listener, every connection dialled or accepted,
// and the handshake that opens each of them. The messages themselves are the
// library's (raft.NetworkTransport), with one change: heartbeats take the same
// way as everything else (see Transport.SetHeartbeatHandler).
//
// Who talks to whom is decided by names, never by addresses. To Raft a server's
// address is its id; where that id is reached is asked of the Directory at each
// dial. So a vote is given to an id, and a node that comes up at the address of
// another is nobody; with addresses for names, two nodes that swapped theirs
// could both be given one vote in one term. Both ends of a connection say at its
// beginning which cluster they are of, who they are and whom they want, and
// nothing else is read before that has been checked. With TLS each certificate
// must name the tag of its member; being signed by the right authority is not
// enough.
//
// Without TLS the handshake is no protection against somebody who can read the
// network: it keeps apart nodes that are misconfigured, copied or wiped.
//
// The package does not know where the table of members comes from, and does not
// decide what a node does that was refused: it tells.
package transport
