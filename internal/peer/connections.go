package peer

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcpeer "google.golang.org/grpc/peer"
)

// Connections are those of a gRPC server. It knows on which of them members have made
// calls between nodes, so that those of a member can be ended. It is safe for
// concurrent use.
type Connections struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// NewConnections returns Connections without one.
func NewConnections() *Connections { return &Connections{open: map[*conn]struct{}{}} }

// Credentials returns the server's credentials with which its connections become
// known; inner is nil without TLS. A listener would do too, but gRPC sets options of
// the socket where it sees one.
func (c *Connections) Credentials(inner credentials.TransportCredentials) credentials.TransportCredentials {
	if inner == nil {
		inner = insecure.NewCredentials()
	}
	return knownCredentials{inner, c}
}

// Disconnect ends the connections on which the member with this raw Raft id has made
// calls. It may connect again, and is then judged anew.
func (c *Connections) Disconnect(id []byte) {
	c.mu.Lock()
	var all []*conn
	for conn := range c.open {
		if conn.isOf(id) {
			all = append(all, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range all {
		_ = conn.raw.Close() // Without a good-bye, which would wait for who does not read.
	}
}

type knownCredentials struct {
	credentials.TransportCredentials
	all *Connections
}

// ServerHandshake implements credentials.TransportCredentials.
func (k knownCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := k.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return secured, info, err
	}
	known := &conn{Conn: secured, raw: raw, all: k.all}
	k.all.mu.Lock()
	k.all.open[known] = struct{}{}
	k.all.mu.Unlock()
	return known, info, nil
}

// Clone implements credentials.TransportCredentials.
func (k knownCredentials) Clone() credentials.TransportCredentials {
	return knownCredentials{k.TransportCredentials.Clone(), k.all}
}

// conn is one connection of the server.
type conn struct {
	net.Conn
	// raw is what is below TLS, if there is TLS.
	raw net.Conn
	all *Connections

	mu sync.Mutex
	// members are the raw Raft ids of the members that have made calls on it. A
	// connection is one node's, but nothing keeps a hostile one from speaking for
	// others too, which must not hide whose streams are open here.
	//
	// Invariant: they were members, so there are no more than the cluster has.
	members map[string]struct{}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn. Handlers see it, and find the connection by it.
func (c *conn) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

func (c *conn) isOf(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.members[string(id)]
	return ok
}

// note takes note of a member that makes calls, and says whether it is the first time.
func (c *conn) note(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.members[string(id)]; ok {
		return false
	}
	if c.members == nil {
		c.members = map[string]struct{}{}
	}
	c.members[string(id)] = struct{}{}
	return true
}

// remote is the address of the other end, with the connection to it.
type remote struct {
	net.Addr
	conn *conn
}

// callsAs takes note of the member that makes the call of ctx, and says whether its
// connection did not know of it. Then the member must be looked up again: Disconnect
// has not found it here if it was removed before this.
func callsAs(ctx context.Context, id []byte) bool {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return false
	}
	at, ok := p.Addr.(remote)
	return ok && at.conn.note(id)
}
