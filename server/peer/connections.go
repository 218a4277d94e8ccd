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

// Connections are the connections of a gRPC server. They know on which connections members
// have made calls between nodes, so that a member's connections can be closed. They are safe
// for concurrent use.
type Connections struct {
	count Count
	mu    sync.Mutex
	open  map[*conn]struct{}
}

// Count counts a connection after its handshake: for the principal of the certificate in
// info, or else for the address at the other end. nil means that the caller has too many.
type Count func(conn net.Conn, info credentials.AuthInfo) *budget.Connection

// NewConnections returns empty Connections.
func NewConnections(count Count) *Connections {
	return &Connections{count: count, open: map[*conn]struct{}{}}
}

// Credentials returns the server's credentials, which register each connection; inner is
// nil without TLS. A listener could do so too, but gRPC sets socket options only on a
// connection of its own type.
func (c *Connections) Credentials(inner credentials.TransportCredentials) credentials.TransportCredentials {
	if inner == nil {
		inner = insecure.NewCredentials()
	}
	return knownCredentials{inner, c}
}

// Disconnect closes the connections on which the member with this raw Raft id has made
// calls. It may connect again, and is then checked again.
func (c *Connections) Disconnect(id []byte) {
	c.end(func(conn *conn) bool { return conn.isOf(id) })
}

// Keep closes the connections of callers whose certificates are no longer accepted.
// Connections of members stay: Disconnect closes them when the membership ends.
func (c *Connections) Keep(accepted func(credentials.AuthInfo) bool) {
	c.end(func(conn *conn) bool { return !conn.isMembers() && !accepted(conn.info) })
}

// EndStalled closes the connections of callers that have read none of their pending answers
// for half a minute, and of callers that leave a message incomplete for longer than
// wholeTime.
func (c *Connections) EndStalled(now time.Time) {
	c.end(func(conn *conn) bool {
		return conn.held.Stalled(now) || conn.unfinished.overdue(now) && !conn.isMembers()
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

func (k knownCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := k.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return secured, info, err
	}
	held := k.all.count(raw, info)
	if held == nil {
		return secured, info, errors.New("the caller has too many connections") // The other end sees only the end.
	}
	known := &conn{Conn: secured, raw: raw, info: info, all: k.all, held: held, unfinished: newUnfinished()}
	k.all.mu.Lock()
	k.all.open[known] = struct{}{}
	k.all.mu.Unlock()
	return known, info, nil
}

func (k knownCredentials) Clone() credentials.TransportCredentials {
	return knownCredentials{k.TransportCredentials.Clone(), k.all}
}

type conn struct {
	net.Conn
	// raw is the connection below TLS; without TLS it is the connection itself.
	raw net.Conn
	// info has the certificate of the other end, if there is TLS.
	info credentials.AuthInfo
	all  *Connections
	// held is the caller's account in the budget.
	held       *budget.Connection
	unfinished *unfinished

	mu sync.Mutex
	// members are the raw Raft ids of the members that have made calls on the connection. A
	// connection belongs to one node, but a hostile node could use the ids of others too,
	// which must not hide that its own streams are open here.
	//
	// Invariant: all were members, so there are no more than the cluster has.
	members map[string]struct{}
}

// Reasons to close a connection; the other end sees only the end.
var (
	errUnfinished = errors.New("the caller has sent too much that is not whole")
	errResets     = errors.New("the caller resets calls faster than it may")
)

// Read implements net.Conn. Incomplete messages are counted, and the connection of a caller
// that exceeds its budget is closed. So is the connection of a caller that resets too many
// calls, because a handler does not end with its stream (CVE-2023-44487), and gRPC does not
// count resets. A member's connection stays.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
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

func (c *conn) Write(b []byte) (int, error) {
	if less := c.unfinished.wrote(b); less > 0 {
		c.held.Sent(less)
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	c.held.Close()
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn. Handlers find the connection by it.
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

// note records a member that makes calls, and reports whether it was new.
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

type remote struct {
	net.Addr
	conn *conn
}

// Budget returns the caller's account in the budget.
func (r remote) Budget() *budget.Connection { return r.conn.held }

// callsAs records the member that makes the call of ctx, and reports whether the member is
// new on its connection. Then the member must be looked up again: if it was removed before
// this call, Disconnect has not found it here.
func callsAs(ctx context.Context, id []byte) bool {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return false
	}
	at, ok := p.Addr.(remote)
	return ok && at.conn.note(id)
}
