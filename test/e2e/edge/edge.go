// Package edge relays TCP connections over one directed edge between two
// nodes, so that a test can cut the edge as a network would: silently.
//
// It knows nothing of what is relayed. A cut edge is a black hole: bytes in
// flight vanish, new connections are accepted and never answered, and nobody
// gets a reset. Healing closes the connections that lost bytes, because a TCP
// stream with a hole in it must not go on.
package edge

import (
	"io"
	"net"
	"sync"
	"time"
)

// Fault says which bytes an edge swallows.
type Fault uint8

const (
	// None relays everything.
	None Fault = iota
	// Cut swallows both directions.
	Cut
	// LoseAnswers relays what the dialler sends and swallows what comes back.
	LoseAnswers
	// LoseRequests swallows what the dialler sends and relays what comes back.
	LoseRequests
	// LoseLarge swallows what the dialler sends in one piece of more than Large
	// bytes, and what follows it on the same connection.
	LoseLarge
)

// Large is what passes where large packets are lost: a heartbeat, and hardly more.
const Large = 400

// dialLimit bounds the wait for a target that does not answer.
const dialLimit = 10 * time.Second

// Proxy is the relay of one directed edge. Safe for concurrent use.
type Proxy struct {
	listener net.Listener
	pumps    sync.WaitGroup

	mu     sync.Mutex
	target string
	fault  Fault
	// links holds every open connection pair.
	links map[*link]struct{}
	// line is what the line does to all that is sent from now on, on connections
	// that were opened when it did something.
	line Line
	// lines counts the lines there were, for a seed of its own for each.
	lines uint64
	// closed is set once; no link is added after it.
	closed bool
}

// link is one relayed connection.
type link struct {
	dialler net.Conn
	target  net.Conn // nil while the edge is cut
	// holed is set once bytes were lost. Guarded by Proxy.mu.
	holed bool
	// broken is closed with the link; breaks does it once.
	broken chan struct{}
	breaks sync.Once
}

// Listen relays connections from a free loopback port to target.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, links: make(map[*link]struct{})}
	p.pumps.Add(1)
	go p.accept()
	return p, nil
}

// Addr is where the dialler connects to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the fault. Going back to None closes the connections that lost
// bytes or were opened into the hole.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	if f != None {
		return
	}
	for l := range p.links {
		if l.holed {
			l.close()
		}
	}
}

// Move relays to another target, and closes the connections to the old one.
func (p *Proxy) Move(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for l := range p.links {
		l.close()
	}
}

// Delay makes everything on connections that are opened from now on arrive later,
// in both directions.
func (p *Proxy) Delay(d time.Duration) { p.Become(Line{Delay: d}) }

// Become makes the edge such a line, in both directions. It counts at once for
// connections that were opened while the edge was a line that does something, and
// for all that are opened from now on.
func (p *Proxy) Become(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = l
}

// Reset breaks all open connections, so that both ends hear of it at once. New ones are
// relayed as before.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Close ends the relay and waits for its goroutines.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.pumps.Wait()
	return err
}

func (l *link) close() {
	l.breaks.Do(func() { close(l.broken) })
	l.dialler.Close()
	if l.target != nil {
		l.target.Close()
	}
}

// reset closes the link with a reset in place of an end of the stream.
func (l *link) reset() {
	for _, c := range []net.Conn{l.dialler, l.target} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // It may be closed already.
		}
	}
	l.close()
}

func (p *Proxy) accept() {
	defer p.pumps.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.pumps.Add(1)
		go p.serve(conn)
	}
}

func (p *Proxy) serve(dialler net.Conn) {
	defer p.pumps.Done()
	l := &link{dialler: dialler, broken: make(chan struct{})}
	if !p.add(l) {
		return
	}
	defer p.drop(l)
	if p.swallows(l, Cut, 0) {
		drain(dialler) // until healed or closed
		return
	}
	p.mu.Lock()
	address := p.target
	p.mu.Unlock()
	target, err := net.DialTimeout("tcp", address, dialLimit)
	if err != nil {
		return
	}
	p.mu.Lock()
	l.target = target
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return
	}
	p.pumps.Add(1)
	go func() {
		defer p.pumps.Done()
		p.pump(l, dialler, target, LoseRequests)
	}()
	p.pump(l, target, dialler, LoseAnswers)
}

// pump copies until either side ends. Bytes are swallowed in a full cut, and
// while the fault is the one that loses this direction.
func (p *Proxy) pump(l *link, from, to net.Conn, lost Fault) {
	defer from.Close()
	defer to.Close()
	var out io.Writer = to
	if p.lineNow() != (Line{}) {
		line := newLate(to, p.lineNow, p.nextLine(), l.broken)
		defer line.close()
		out = line
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.swallows(l, lost, n) {
			if _, werr := out.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) lineNow() Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line
}

// nextLine numbers the lines.
func (p *Proxy) nextLine() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines++
	return p.lines
}

// swallows tells whether so many bytes of this direction vanish now, and marks the
// link if so.
func (p *Proxy) swallows(l *link, lost Fault, bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	large := p.fault == LoseLarge && lost == LoseRequests && (l.holed || bytes > Large)
	if p.fault != Cut && p.fault != lost && !large {
		return false
	}
	l.holed = true
	return true
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.close()
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.close()
	delete(p.links, l)
}

func drain(c net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
	}
}
