package transport

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// acceptedPort counts the connections that a port accepts.
type acceptedPort struct {
	*twoSockets
	accepted, strangers *atomic.Int32
}

// Accept implements net.Listener.
func (p acceptedPort) Accept() (net.Conn, error) {
	conn, err := p.twoSockets.Accept()
	p.accepted.Add(1)
	return conn, err
}

func (p acceptedPort) Strangers() net.Listener {
	return acceptedStrangers{p.twoSockets.strangers, p.strangers}
}

type acceptedStrangers struct {
	net.Listener
	accepted *atomic.Int32
}

// Accept implements net.Listener.
func (p acceptedStrangers) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	p.accepted.Add(1)
	return conn, err
}

// startAttacked starts node A on a port that counts the connections accepted from members' addresses and from
// others, and a member that has greeted it.
func startAttacked(t *testing.T) (a, member *Transport, counts acceptedPort) {
	b := newBook()
	counts = acceptedPort{accepted: new(atomic.Int32), strangers: new(atomic.Int32)}
	a = start(t, b, "A", func(c *Config) {
		_ = c.Listener.Close()
		counts.twoSockets = openTwo(t, "127.0.0.1:0")
		c.Listener = counts
	})
	member = start(t, b, "B", nil)
	must(t, member.Greet(t.Context(), raft.ServerID(idOf("A"))))
	return a, member, counts
}

// TestAMemberOvertakesSilentConnections: a member's connection is accepted first, however many
// silent connections are open.
func TestAMemberOvertakesSilentConnections(t *testing.T) {
	a, member, counts := startAttacked(t)
	begin := time.Now()
	for range 100 {
		connect(t, a)
	}
	must(t, member.Greet(t.Context(), raft.ServerID(idOf("A"))))
	if n := counts.accepted.Load(); n > 1 && time.Since(begin) < silence {
		t.Errorf("%d connections were accepted before the member's", n-1)
	}
}
