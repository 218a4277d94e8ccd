package cluster_test

import (
	"context"
	"net"
	"sync"
)

// cable is what connects one node with all others. Cut, it swallows everything
// without a word, as a network does.
type cable struct {
	mu    sync.Mutex
	cut   bool
	conns map[*cabled]struct{}
}

func newCable() *cable { return &cable{conns: map[*cabled]struct{}{}} }

func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
}

// heal connects again. Connections from before have lost bytes, and are closed.
func (c *cable) heal() {
	c.mu.Lock()
	if !c.cut {
		c.mu.Unlock()
		return
	}
	c.cut = false
	conns := c.conns
	c.conns = map[*cabled]struct{}{}
	c.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}

// wrap puts a connection on the cable.
func (c *cable) wrap(conn net.Conn) net.Conn {
	w := &cabled{Conn: conn, cable: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[w] = struct{}{}
	return w
}

func (c *cable) dial(ctx context.Context, address string) (net.Conn, error) {
	if c.isCut() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return c.wrap(conn), nil
}

type cabled struct {
	net.Conn
	cable *cable
}

func (c *cabled) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.cable.isCut() {
			return n, err
		}
	}
}

func (c *cabled) Write(p []byte) (int, error) {
	if c.cable.isCut() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *cabled) Close() error {
	c.cable.mu.Lock()
	delete(c.cable.conns, c)
	c.cable.mu.Unlock()
	return c.Conn.Close()
}

type cabledListener struct {
	net.Listener
	cable *cable
}

func (l cabledListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.cable.wrap(conn), nil
}
