package simulation

import (
	"io"
	"net"
	"os"
	"time"
)

// windowBytes is how much may be on its way in one direction of a connection.
const windowBytes = 1 << 20

// packetBytes is how much arrives at a time over a link with a rate.
const packetBytes = 1 << 10

// conn is one end of a connection.
type conn struct {
	port    *port
	other   *conn
	in, out *pipe
	remote  addr
	closed  bool
	// The deadlines; zero is none.
	readBy, writeBy time.Time
}

var _ net.Conn = (*conn)(nil)

// orNil keeps a nil *conn from becoming an interface that is not nil.
func (c *conn) orNil() net.Conn {
	if c == nil {
		return nil
	}
	return c
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n := c.in.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		now := time.Now()
		next, n, err := c.in.take(b, now)
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case err != nil || n > 0:
			return n, err
		case expired(c.readBy, now):
			return 0, os.ErrDeadlineExceeded
		}
		c.in.await(next, c.readBy)
	}
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n := c.out.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case c.closed || c.port.dead:
			return 0, net.ErrClosed
		case c.out.broken && n.stops(c.in.way):
			return len(b), nil // The sender cannot learn that the other end is gone.
		case c.out.broken:
			// As with a reset, it is the end of both directions.
			c.in.broken = true
			c.in.wake()
			return 0, errReset
		case expired(c.writeBy, time.Now()):
			return 0, os.ErrDeadlineExceeded
		case c.out.size < windowBytes:
			c.out.put(b)
			return len(b), nil
		}
		c.out.await(time.Time{}, c.writeBy)
	}
}

func expired(by, now time.Time) bool { return !by.IsZero() && !now.Before(by) }

// Close implements net.Conn. What was sent still arrives, and then the end.
func (c *conn) Close() error {
	n := c.in.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.out.end()
	c.in.broken = true
	c.in.wake()
	delete(n.conns, c)
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return addr(c.port.host + ":0") }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *conn) setDeadlines(read, write *time.Time) error {
	n := c.in.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if read != nil {
		c.readBy = *read
		c.in.wake()
	}
	if write != nil {
		c.writeBy = *write
		c.out.wake()
	}
	return nil
}

// pipe is one direction of a connection. It is guarded by the network's lock.
type pipe struct {
	net *network
	way
	segments []segment
	size     int
	// last is when the newest segment arrives: none overtakes another.
	last time.Time
	// ended says that the sender has closed, broken that bytes are lost, silent
	// that one end is gone without a word, and bytes vanish.
	ended, broken, silent bool
	changed               chan struct{}
}

// segment is bytes with the time of their arrival.
type segment struct {
	at   time.Time
	data []byte
}

func newPipe(n *network, w way) *pipe {
	return &pipe{net: n, way: w, changed: make(chan struct{})}
}

func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) put(b []byte) {
	if p.silent {
		return
	}
	rate := p.net.rate[p.edge.to]
	if rate > 0 && len(b) > packetBytes {
		p.put(b[:packetBytes])
		p.put(b[packetBytes:])
		return
	}
	at := p.net.arrives(p.edge)
	if at.Before(p.last) {
		at = p.last
	}
	if rate > 0 {
		at = at.Add(time.Duration(len(b)) * time.Second / time.Duration(rate))
	}
	p.last = at
	p.net.count(p.edge, len(b))
	p.segments = append(p.segments, segment{at, append([]byte(nil), b...)})
	p.size += len(b)
	p.wake()
}

func (p *pipe) end() {
	p.ended = true
	p.wake()
}

// take moves what has arrived into b. If nothing has, it returns when something
// will; zero if that is not known.
func (p *pipe) take(b []byte, now time.Time) (next time.Time, n int, err error) {
	switch {
	case p.broken:
		return next, 0, errReset
	case p.net.stops(p.way):
		return next, 0, nil
	case len(p.segments) == 0 && p.ended:
		return next, 0, io.EOF
	case len(p.segments) == 0:
		return next, 0, nil
	}
	for n < len(b) && len(p.segments) > 0 && !p.segments[0].at.After(now) {
		s := &p.segments[0]
		k := copy(b[n:], s.data)
		n += k
		if s.data = s.data[k:]; len(s.data) == 0 {
			p.segments = p.segments[1:]
		}
	}
	if n == 0 {
		return p.segments[0].at, 0, nil
	}
	full := p.size >= windowBytes
	if p.size -= n; full {
		p.wake()
	}
	return next, n, nil
}

// await releases the lock until something changes or the earlier of the times.
func (p *pipe) await(next, by time.Time) {
	if next.IsZero() || !by.IsZero() && by.Before(next) {
		next = by
	}
	changed := p.changed
	p.net.mu.Unlock()
	defer p.net.mu.Lock()
	if next.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
