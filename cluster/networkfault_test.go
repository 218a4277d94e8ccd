package cluster_test

import (
	"context"
	"net"
	"sync"

	"github.com/idnode/idnode/cluster/transport"
)

// networkFault is what connects one node with all others. Partitioned, it drops
// everything without an error, as a network does.
type networkFault struct {
	mu    sync.Mutex
	cut   bool
	conns map[*faultyConn]struct{}
}

func newNetworkFault() *networkFault { return &networkFault{conns: map[*faultyConn]struct{}{}} }

func (f *networkFault) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

func (f *networkFault) partition() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// heal connects again. Connections from before have lost bytes, and are closed.
func (f *networkFault) heal() {
	f.mu.Lock()
	if !f.cut {
		f.mu.Unlock()
		return
	}
	f.cut = false
	conns := f.conns
	f.conns = map[*faultyConn]struct{}{}
	f.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}

// wrap puts a connection on the network.
func (f *networkFault) wrap(conn net.Conn) net.Conn {
	w := &faultyConn{Conn: conn, fault: f}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[w] = struct{}{}
	return w
}

func (f *networkFault) dial(ctx context.Context, address string) (net.Conn, error) {
	if f.isCut() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return f.wrap(conn), nil
}

type faultyConn struct {
	net.Conn
	fault *networkFault
}

func (c *faultyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.fault.isCut() {
			return n, err
		}
	}
}

func (c *faultyConn) Write(p []byte) (int, error) {
	if c.fault.isCut() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *faultyConn) Close() error {
	c.fault.mu.Lock()
	delete(c.fault.conns, c)
	c.fault.mu.Unlock()
	return c.Conn.Close()
}

// wrappedListener wraps each connection.
type wrappedListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(conn), nil
}

// wrappedTCP is a cluster.Network that wraps each connection.
type wrappedTCP func(net.Conn) net.Conn

// Listen implements cluster.Network.
func (wrap wrappedTCP) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	return wrappedListener{l, wrap}, err
}

// DialContext implements cluster.Network.
func (wrap wrappedTCP) DialContext(ctx context.Context, address string) (net.Conn, error) {
	conn, err := transport.DialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return wrap(conn), nil
}
