package peer

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

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
	// member is the raw Raft id of the member that has made calls on it, nil before.
	member atomic.Pointer[string]
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
	member := c.member.Load()
	return member != nil && *member == string(id)
}

// remote is the address of the other end, with the connection to it.
type remote struct {
	net.Addr
	conn *conn
}

// callsAs takes note of who makes the call of ctx. It comes before the member is
// looked up: whoever is removed after that is found here.
func callsAs(ctx context.Context, id []byte) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return
	}
	if at, ok := p.Addr.(remote); ok && !at.conn.isOf(id) {
		member := string(id)
		at.conn.member.Store(&member)
	}
}
