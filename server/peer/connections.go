package peer

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/idnode/idnode/server/budget"
)

// Connections are the callers' connections of a gRPC server. They are safe for concurrent use.
type Connections struct {
	count Count
	mu    sync.Mutex
	open  map[*conn]struct{}
	// refusals has those that are under way.
	refusals chan struct{}
}

// Count counts a connection after its handshake: for the principal of the certificate in
// info, or else for the address at the other end. nil means that the caller has too many.
type Count func(conn net.Conn, info credentials.AuthInfo) *budget.Connection

// NewConnections returns empty Connections.
func NewConnections(count Count) *Connections {
	return &Connections{count: count, open: map[*conn]struct{}{}, refusals: make(chan struct{}, refusalsAtOnce)}
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

// Each calls f with what the handshake of each open connection found.
func (c *Connections) Each(f func(credentials.AuthInfo)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		f(conn.info)
	}
}

// Keep has the calls of callers whose certificates are no longer accepted refused in form (see Ended), and
// closes their connections when it finds them for the third time.
func (c *Connections) Keep(accepted func(credentials.AuthInfo) bool) {
	c.end(func(conn *conn) bool { return !accepted(conn.info) && conn.ended.Add(1) > 2 })
}

// EndStalled closes the connections of callers that have read none of their pending answers
// for half a minute, and of callers that leave a message incomplete for longer than
// wholeTime.
func (c *Connections) EndStalled(now time.Time) {
	c.end(func(conn *conn) bool {
		return conn.held.Stalled(now) || conn.unfinished.overdue(now)
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
		k.all.refuse(secured, raw, budget.ErrTooMany.Error())
		return secured, info, budget.ErrTooMany
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
	// ended counts how often the certificate was found to be no longer accepted.
	ended atomic.Int32
}

// Reasons to close a connection; the other end sees only the end.
var (
	errUnfinished = errors.New("the caller has sent too many bytes of incomplete messages")
	errWasted     = errors.New("the caller resets calls, or sends empty frames, faster than it may")
)

// Read implements net.Conn. Incomplete messages are counted, and the connection of a caller
// that exceeds its budget is closed. So is the connection of a caller that resets too many
// calls, because a handler does not end with its stream (CVE-2023-44487), or sends too many frames
// that carry nothing. gRPC counts neither.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	now := time.Now()
	more, held, wasted := c.unfinished.read(b[:n], now)
	if !c.held.Wasted(now, wasted) {
		return 0, errWasted
	}
	switch {
	case more < 0:
		c.held.Sent(-more)
	case more > 0:
		c.held.Unsent(more)
		if c.held.Flooded(held) {
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

type remote struct {
	net.Addr
	conn *conn
}

// Ended reports whether the caller's certificate is no longer accepted.
func (r remote) Ended() bool { return r.conn.ended.Load() > 0 }

// Budget returns the caller's account in the budget.
func (r remote) Budget() *budget.Connection { return r.conn.held }
