package transport

import (
	"container/list"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// keepAlive detects within 20 s that the other end of a silent connection is gone; the
// library reads accepted connections without a deadline.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}

// callsKeepAlive detects a dead peer within 4 s on connections for calls, about as soon as
// unanswered pings do: an idle connection to it would fail the next call.
var callsKeepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

func setKeepAlive(conn net.Conn, why purpose) {
	config := keepAlive
	if why == forCalls {
		config = callsKeepAlive
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(config) // Without keep-alives a dead connection is noticed later.
	}
}

// ListenTCP opens a Raft port. Connections get their keep-alive once they are admitted.
func ListenTCP(address string) (net.Listener, error) {
	port, err := openPort(address, keepSilent)
	if err != nil {
		return nil, err
	}
	return divide(port.(*net.TCPListener)), nil
}

func openPort(address string, options func(fd uintptr)) (net.Listener, error) {
	port := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error { return c.Control(options) }}
	port.SetMultipathTCP(false) // Not every kernel can defer the accept of silent connections of Multipath TCP.
	return port.Listen(context.Background(), "tcp", address)
}

// conns are the connections in use. The library does not close accepted connections when
// it is closed itself.
type conns struct {
	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
	// lost gets a value when the last accepted connection of a member was closed by the
	// member.
	lost chan struct{}
}

func newConns() *conns {
	return &conns{open: map[*conn]struct{}{}, lost: make(chan struct{}, 1)}
}

// conn is a connection to or from a member, after its handshake.
type conn struct {
	net.Conn
	// raw is the connection below TLS; without TLS it is the connection itself.
	raw  net.Conn
	peer string
	// process is the member's process at the other end.
	process uint64
	// accepted means that the member dialled, for Raft's messages: its connections for calls
	// say nothing of the leader.
	accepted bool
	// stall bounds the time without progress of a snapshot that is sent to the member; 0 on a
	// connection for messages. The library (v1.7.3) bounds the whole transfer by the snapshot's
	// size: over a link that is slower than expected, a snapshot started again and again. Here
	// a transfer may last while it progresses, as the receiver reports: the number of bytes
	// sent says little, because buffers on the way may hold all of them.
	stall time.Duration
	all   *conns
}

// SetDeadline implements net.Conn. With stall, any call extends the deadline.
func (c *conn) SetDeadline(t time.Time) error {
	if c.stall > 0 {
		t = time.Now().Add(c.stall)
	}
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn. It detects the end of the connection: the system closes the
// connections of a process that ends, so its peers learn of the end at once.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.accepted && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.all.ended(c)
	}
	return n, err
}

// Close closes and forgets the connection. With TLS it sends no close_notify, which would
// wait for a peer that does not read.
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.raw.Close()
}

// ended forgets a connection that the other end has closed. A connection that was closed
// here is forgotten already.
func (s *conns) ended(c *conn) {
	s.mu.Lock()
	_, tracked := s.open[c]
	delete(s.open, c)
	lost := tracked && !s.accepts(c.peer)
	s.mu.Unlock()
	if lost {
		select {
		case s.lost <- struct{}{}:
		default:
		}
	}
}

func (s *conns) connected(peer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts(peer)
}

// accepts is connected without locking: the caller holds the lock.
func (s *conns) accepts(peer string) bool {
	for c := range s.open {
		if c.accepted && c.peer == peer {
			return true
		}
	}
	return false
}

// add tracks a connection. It returns false if the transport is closed: the caller closes the
// connection.
func (s *conns) add(c *conn) bool {
	c.all = s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[c] = struct{}{}
	}
	return !s.closed
}

func (s *conns) matching(match func(*conn) bool) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.open)), func(c *conn) bool { return !match(c) })
}

func (s *conns) closeIf(match func(*conn) bool) {
	for _, c := range s.matching(match) {
		_ = c.Close()
	}
}

// progressed records that a member has reported the progress of a snapshot that it gets.
func (s *conns) progressed(peer string) {
	for _, c := range s.matching(func(c *conn) bool { return c.stall > 0 && c.peer == peer }) {
		_ = c.SetDeadline(time.Time{})
	}
}

// shut closes all connections, and connections that are added later.
func (s *conns) shut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeIf(func(*conn) bool { return true })
}

// pending are accepted connections, silent or in a handshake. At the limit the oldest
// connection of the host that has most of them is closed: a member's handshake takes
// milliseconds, so the oldest is hardly a member's. Hosts are counted separately because a
// distant member needs several round trips, during which one stranger can fill all slots.
type pending struct {
	mu     sync.Mutex
	limit  int
	oldest *list.List // of waiting
	closed bool
}

type waiting struct {
	net.Conn
	host string
}

func newPending(limit int) *pending {
	return &pending{limit: limit, oldest: list.New()}
}

func (p *pending) add(conn net.Conn) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return func() {}
	}
	at := p.oldest.PushBack(waiting{conn, remoteHost(conn)})
	if p.oldest.Len() > p.limit {
		p.close(p.surplus())
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.oldest.Remove(at)
	}
}

// surplus returns the oldest connection of the host, or of the hosts, with the most.
func (p *pending) surplus() *list.Element {
	of, most := map[string]int{}, 0
	for at := p.oldest.Front(); at != nil; at = at.Next() {
		host := at.Value.(waiting).host
		of[host]++
		most = max(most, of[host])
	}
	at := p.oldest.Front()
	for of[at.Value.(waiting).host] < most {
		at = at.Next()
	}
	return at
}

func (p *pending) close(at *list.Element) { _ = p.oldest.Remove(at).(waiting).Close() }

// shut closes all connections, and connections that are added later.
func (p *pending) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.oldest.Len() > 0 {
		p.close(p.oldest.Front())
	}
}
