package peer

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/idnode/idnode/server/budget"
)

// Connections are those of a gRPC server. It knows on which of them members have made
// calls between nodes, so that those of a member can be ended. It is safe for
// concurrent use.
type Connections struct {
	count Count
	mu    sync.Mutex
	open  map[*conn]struct{}
}

// Count counts a connection after its handshake: for the principal of the certificate in
// info, or else for the address at the other end. nil says that it has too many.
type Count func(conn net.Conn, info credentials.AuthInfo) *budget.Connection

// errTooMany ends a connection; the other end only sees that it ended.
var errTooMany = errors.New("the caller has too many connections")

// NewConnections returns Connections without one. count may be nil.
func NewConnections(count Count) *Connections {
	return &Connections{count: count, open: map[*conn]struct{}{}}
}

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
// calls. It may connect again, and is then judged again.
func (c *Connections) Disconnect(id []byte) {
	c.end(func(conn *conn) bool { return conn.isOf(id) })
}

// Keep ends the connections of callers whose certificates are not accepted any more.
// Those of members stay: they end with the membership.
func (c *Connections) Keep(accepted func(credentials.AuthInfo) bool) {
	c.end(func(conn *conn) bool { return !conn.isMembers() && !accepted(conn.info) })
}

// EndStalled ends the connections of callers that hold much and have read none of it
// for half a minute, and of callers that leave a message incomplete for too long.
func (c *Connections) EndStalled(now time.Time) {
	c.end(func(conn *conn) bool {
		return conn.held.Stalled(now) || conn.unfinished != nil && conn.unfinished.overdue(now) && !conn.isMembers()
	})
}

func (c *Connections) end(unwanted func(*conn) bool) {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range all {
		if unwanted(conn) {
			_ = conn.raw.Close() // Without a GOAWAY, which would wait for a caller that does not read.
		}
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
	known := &conn{Conn: secured, raw: raw, info: info, all: k.all}
	if k.all.count != nil {
		if known.held = k.all.count(raw, info); known.held == nil {
			return secured, info, errTooMany
		}
		known.unfinished = newUnfinished()
	}
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
	// info holds the certificate of the other end, if there is TLS.
	info credentials.AuthInfo
	all  *Connections
	// held is what is held for the caller; nil if that is not counted.
	held *budget.Connection
	// unfinished is nil where held is.
	unfinished *unfinished

	mu sync.Mutex
	// members are the raw Raft ids of the members that have made calls on it. A
	// connection is one node's, but nothing keeps a hostile one from speaking for
	// others too, which must not hide whose streams are open here.
	//
	// Invariant: they were members, so there are no more than the cluster has.
	members map[string]struct{}
}

// These end a connection; the other end only sees that it ended.
var (
	errUnfinished = errors.New("the caller has sent too much that is not whole")
	errResets     = errors.New("the caller resets calls faster than it may")
)

// Read implements net.Conn. What is not whole is counted, and ends the connection of a
// caller for whom there is no more room. So are calls that are reset, because a handler that
// was begun does not end with its stream (CVE-2023-44487): gRPC sees nothing of those that
// are too many. A member's connection stays.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.held == nil {
		return n, err
	}
	now := time.Now()
	more, held, resets := c.unfinished.read(b[:n], now)
	if !c.held.Resets(now, resets) && !c.isMembers() {
		return 0, errResets
	}
	switch {
	case more < 0:
		c.held.Sent(-more)
	case more > 0:
		c.held.Unsent(more)
		if c.held.Flooded(held) && !c.isMembers() {
			return 0, errUnfinished
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if c.held != nil {
		if less := c.unfinished.wrote(b); less > 0 {
			c.held.Sent(less)
		}
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	c.held.Close()
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

func (c *conn) isMembers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.members) > 0
}

// note records a member that makes calls, and says whether it is the first time.
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

// Budget is what is held for the caller at the other end; nil if that is not counted.
func (r remote) Budget() *budget.Connection { return r.conn.held }

// callsAs records the member that makes the call of ctx, and says whether its
// connection did not know it. Then the member must be looked up again: Disconnect
// has not found it here if it was removed before this.
func callsAs(ctx context.Context, id []byte) bool {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return false
	}
	at, ok := p.Addr.(remote)
	return ok && at.conn.note(id)
}
