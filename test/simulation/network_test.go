package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Errors of connections, as callers of a socket see them.
var (
	errReset   = &net.OpError{Op: "read", Net: "simulated", Err: syscall.ECONNRESET}
	errRefused = errors.New("connection refused")
	errInUse   = errors.New("address already in use")
)

// edge is one direction between two hosts. A host is a node's tag, or a client's
// name.
type edge struct{ from, to string }

// way is what a firewall tells apart in a direction: what is sent to a port, such as ":7401", or the
// answers from a port.
type way struct {
	edge
	port    string
	answers bool
}

// network is all connections of a seed. Everything in it is guarded by mu: a
// simulated network need not be fast, and one lock is easily right.
type network struct {
	mu     sync.Mutex
	random *rand.Rand
	// latency is how long bytes travel at least, jitter how much longer at most.
	latency, jitter time.Duration
	// slow is the share of writes that travel for long. Clients' do not: a first try
	// that arrives late is no later than its node knows (see late_test.go).
	slow float64
	// rate is how many bytes a second arrive at a host on one connection; 0 is any number.
	rate map[string]int
	// unheard is how long at most it takes until the others notice that a machine lost power.
	unheard time.Duration
	// held has until when nothing that a node sends to others arrives.
	held map[string]time.Time
	// frozen has until when nothing arrives at a node either.
	frozen map[string]time.Time
	// cut are the directions in which nothing arrives. What is sent meanwhile
	// arrives afterwards, as with a transport that sends again.
	cut map[edge]bool
	// closed are the ways in which nothing arrives either.
	closed map[way]bool
	// troubled has until when what is sent in a direction is late or lost.
	troubled map[edge]time.Time
	// names are the machines' addresses by name, dns is how questions for them are answered,
	// and left has the addresses that no machine has any more.
	names map[string]string
	dns   dns
	left  map[string]bool

	listeners map[string]*listener
	conns     map[*conn]bool
	// sent counts what was written in each direction.
	sent map[edge]sent
	// changed is closed when cut changes.
	changed chan struct{}
}

func newNetwork(random *rand.Rand, latency, jitter time.Duration, slow float64) *network {
	return &network{
		random: random, rate: map[string]int{}, unheard: 8 * time.Second, latency: latency, jitter: jitter, slow: slow,
		cut: map[edge]bool{}, closed: map[way]bool{}, held: map[string]time.Time{}, frozen: map[string]time.Time{},
		troubled: map[edge]time.Time{},
		names:    map[string]string{}, left: map[string]bool{},
		listeners: map[string]*listener{}, conns: map[*conn]bool{}, sent: map[edge]sent{}, changed: make(chan struct{}),
	}
}

// setCut cuts or heals one direction.
func (n *network) setCut(e edge, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[e] == cut {
		return
	}
	n.cut[e] = cut
	n.trouble(e, time.Now())
	n.wakeAll()
}

// setClosed closes or opens ways.
func (n *network) setClosed(ways []way, closed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range ways {
		delete(n.closed, w)
		if closed {
			n.closed[w] = true
		}
		n.trouble(w.edge, time.Now())
	}
	n.wakeAll()
}

// stops says whether nothing arrives in a way. The caller holds mu.
func (n *network) stops(w way) bool { return n.cut[w.edge] || n.closed[w] }

// isCut says whether a direction is cut.
func (n *network) isCut(e edge) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[e]
}

// heal heals all directions, and nothing travels for longer than it must any more.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e, cut := range n.cut {
		if cut {
			n.trouble(e, time.Now())
		}
	}
	for w := range n.closed {
		n.trouble(w.edge, time.Now())
	}
	clear(n.cut)
	clear(n.closed)
	clear(n.held)
	clear(n.frozen)
	n.jitter, n.slow = 0, 0
	n.wakeAll()
}

func (n *network) wakeAll() {
	close(n.changed)
	n.changed = make(chan struct{})
	for c := range n.conns {
		c.in.wake()
	}
}

// stretch has bytes travel for so long at least from here on.
func (n *network) stretch(latency time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = latency
}

// reset breaks connections between two hosts, all or some of them.
func (n *network) reset(a, b string, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble(edge{a, b}, time.Now())
	for c := range n.conns {
		if (c.out.edge == edge{a, b}) && (all || n.random.IntN(2) == 0) {
			n.breakConn(c)
		}
	}
}

// breakConn breaks both ends. The caller holds mu.
func (n *network) breakConn(c *conn) {
	for _, p := range []*pipe{c.in, c.out} {
		p.broken = true
		p.wake()
	}
	delete(n.conns, c)
	delete(n.conns, c.other)
}

// hold has nothing arrive for so long that a node sends to others from here on.
func (n *network) hold(host string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[host] = time.Now().Add(d)
	n.trouble(edge{from: host}, n.held[host])
}

// freeze has nothing arrive for so long that a node sends or is sent from here on.
func (n *network) freeze(host string, d time.Duration) {
	n.hold(host, d)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen[host] = n.held[host]
	n.trouble(edge{to: host}, n.frozen[host])
}

// arrives is when the next bytes in a direction arrive. The caller holds mu.
func (n *network) arrives(e edge) time.Time {
	at := time.Now().Add(n.travel(e))
	if until := n.held[e.from]; until.After(at) && !isClient(e.to) {
		at = until
	}
	if until := n.frozen[e.to]; until.After(at) {
		at = until
	}
	return at
}

// travel is how long the next bytes travel. The caller holds mu.
func (n *network) travel(e edge) time.Duration {
	d := n.latency
	if n.jitter > 0 {
		d += time.Duration(n.random.Int64N(int64(n.jitter)))
	}
	if n.slow > 0 && !isClient(e.from) && n.random.Float64() < n.slow {
		d += delay(n.random)
	}
	if d > slowTravel && !isClient(e.from) && !isClient(e.to) {
		n.trouble(e, time.Now().Add(d))
	}
	return d
}

// port is one process's access to the network. It implements cluster.Network.
type port struct {
	net  *network
	host string
	// dead is guarded by the network's lock.
	dead bool
}

func (n *network) port(host string) *port { return &port{net: n, host: host} }

// kill ends the process's access: its listeners are gone and its connections
// break. The others hear of that, unless silent, which is a machine without
// power; then they hear of it much later.
func (p *port) kill(silent bool) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	p.dead = true
	for address, l := range n.listeners {
		if l.port == p {
			delete(n.listeners, address)
			l.shut()
		}
	}
	for c := range n.conns {
		switch {
		case c.port != p:
		case silent:
			c.closed, c.in.silent, c.out.silent = true, true, true
			c.in.wake()
			time.AfterFunc(time.Duration(n.random.Int64N(int64(n.unheard))), func() { n.breakLater(c) })
			delete(n.conns, c)
		default:
			n.breakConn(c)
		}
	}
}

func (n *network) breakLater(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breakConn(c)
}

// Listen implements cluster.Network.
func (p *port) Listen(address string) (net.Listener, error) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.dead {
		return nil, net.ErrClosed
	}
	if n.listeners[address] != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, errInUse)
	}
	l := &listener{port: p, address: address, arrived: make(chan *conn, 64), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// DialContext implements cluster.Network.
func (p *port) DialContext(ctx context.Context, address string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host, err = p.net.resolve(ctx, host); err != nil {
		return nil, err
	}
	for {
		c, wait, err := p.connect(host, net.JoinHostPort(host, service))
		if c != nil || err != nil {
			return c.orNil(), err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// connect makes a connection, or returns what to wait for.
func (p *port) connect(host, address string) (*conn, <-chan struct{}, error) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l, to := n.listeners[address], hostOf(host)
	if l != nil {
		to = l.port.host
	}
	service := address[strings.LastIndex(address, ":"):]
	there, back := way{edge{p.host, to}, service, false}, way{edge{to, p.host}, service, true}
	switch {
	case p.dead:
		return nil, nil, net.ErrClosed
	case n.stops(there) || n.stops(back):
		return nil, n.changed, nil
	case l == nil && n.left[host]:
		return nil, nil, nil // Nobody is there to refuse it.
	case l == nil:
		return nil, nil, fmt.Errorf("dialling %s: %w", address, errRefused)
	}
	out, in := newPipe(n, there), newPipe(n, back)
	near := &conn{port: p, in: in, out: out, remote: addr(address)}
	far := &conn{port: l.port, in: out, out: in, remote: addr(p.host + ":1")}
	near.other, far.other = far, near
	select {
	case l.arrived <- far:
	default:
		return nil, nil, fmt.Errorf("dialling %s: %w", address, errRefused)
	}
	n.conns[near], n.conns[far] = true, true
	return near, nil, nil
}

// listener implements net.Listener.
type listener struct {
	port    *port
	address string
	arrived chan *conn
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.arrived:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	n := l.port.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[l.address] == l {
		delete(n.listeners, l.address)
	}
	l.shut()
	return nil
}

// shut closes once. The caller holds the network's lock.
func (l *listener) shut() {
	select {
	case <-l.closed:
		return
	default:
		close(l.closed)
	}
	for {
		select {
		case c := <-l.arrived:
			l.port.net.breakConn(c)
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return addr(l.address) }

type addr string

func (addr) Network() string  { return "simulated" }
func (a addr) String() string { return string(a) }
