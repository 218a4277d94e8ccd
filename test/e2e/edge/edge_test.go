package edge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
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
	for _, fault := range []Fault{Cut, LoseAnswers, LoseRequests} {
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

// TestLoseLarge: small pieces pass, until a large one has made a hole.
func TestLoseLarge(t *testing.T) {
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Set(LoseLarge)
	c := dial(t, p)
	if !answered(t, c, 5*time.Second) {
		t.Error("a small piece was lost")
	}
	if _, err := c.Write(bytes.Repeat([]byte("\n"), Large+1)); err != nil {
		t.Fatal(err)
	}
	if answered(t, c, 50*time.Millisecond) {
		t.Error("a stream went on after a hole")
	}
	if !answered(t, dial(t, p), 5*time.Second) {
		t.Error("a small piece was lost on a new connection")
	}
}

// TestDelay: bytes take their time in each direction, and all arrive in order.
func TestDelay(t *testing.T) {
	const delay = 30 * time.Millisecond
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Delay(delay)
	c := dial(t, p)
	begin := time.Now()
	if !answered(t, c, 10*time.Second) || time.Since(begin) < 2*delay {
		t.Errorf("an answer came after %v", time.Since(begin))
	}
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	go c.Write(sent)
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the bytes that came are others: %v", err)
	}
}

// TestNarrow: more than the line carries waits its turn.
func TestNarrow(t *testing.T) {
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Become(Line{BytesPerSecond: 100_000})
	c := dial(t, p)
	begin := time.Now()
	if _, err := c.Write(make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	// 200 ms there, and the same back behind it.
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("20 kB came there and back within %s", took)
	}
}

// TestLoss: what is lost comes late, and in order; a line that became sound again
// is so for open connections too.
func TestLoss(t *testing.T) {
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Become(Line{Loss: 0.999})
	c := dial(t, p)
	begin := time.Now()
	if answered(t, c, retransmission/2) {
		t.Errorf("an answer came after %s on a line that loses everything", time.Since(begin))
	}
	p.Become(Line{Delay: time.Millisecond})
	if young := dial(t, p); !answered(t, young, 5*time.Second) {
		t.Error("no answer on a sound line")
	}
}

// TestReset: both ends of an open connection hear of it, and a new one is relayed.
func TestReset(t *testing.T) {
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	old := dial(t, p)
	if !answered(t, old, 5*time.Second) {
		t.Fatal("a sound edge lost a line")
	}
	p.Reset()
	old.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := old.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the dialler heard %v", err)
	}
	if !answered(t, dial(t, p), 5*time.Second) {
		t.Error("no answer on a new connection")
	}
}
