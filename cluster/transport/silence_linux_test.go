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
	net.Listener
	accepted *atomic.Int32
}

// Accept implements net.Listener.
func (p acceptedPort) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	p.accepted.Add(1)
	return conn, err
}

// TestAMemberOvertakesSilentConnections: a member's connection is accepted first, however many
// silent connections are open.
func TestAMemberOvertakesSilentConnections(t *testing.T) {
	var accepted atomic.Int32
	b := newBook()
	a := start(t, b, "A", func(c *Config) {
		_ = c.Listener.Close()
		port, err := ListenTCP("127.0.0.1:0")
		must(t, err)
		c.Listener = acceptedPort{port, &accepted}
	})
	member := start(t, b, "B", nil)
	begin := time.Now()
	for range 100 {
		connect(t, a)
	}
	must(t, member.Greet(t.Context(), raft.ServerID(idOf("A"))))
	if n := accepted.Load(); n > 1 && time.Since(begin) < silence {
		t.Errorf("%d connections were accepted before the member's", n-1)
	}
}
