package edge

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echo serves lines back and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answered says whether a line comes back within the time.
func answered(t *testing.T, c net.Conn, within time.Duration) bool {
	t.Helper()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return false
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && line == "hello\n"
}

func TestProxy(t *testing.T) {
	for _, fault := range []Fault{Cut, LoseAnswers} {
		p, err := Listen(echo(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		old := dial(t, p)
		if !answered(t, old, 5*time.Second) {
			t.Fatal("a sound edge lost a line")
		}
		p.Set(fault)
		if answered(t, old, 50*time.Millisecond) {
			t.Errorf("fault %d: an old connection was answered", fault)
		}
		young := dial(t, p)
		if answered(t, young, 50*time.Millisecond) {
			t.Errorf("fault %d: a new connection was answered", fault)
		}
		p.Set(None)
		old.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := old.Read(make([]byte, 1)); err == nil {
			t.Errorf("fault %d: a connection that lost bytes went on after healing", fault)
		}
		if !answered(t, dial(t, p), 5*time.Second) {
			t.Errorf("fault %d: a healed edge lost a line", fault)
		}
	}
}
