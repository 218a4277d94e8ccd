package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// Lookups says how a name service answers.
type Lookups uint32

const (
	// Answered says that every name is loopback.
	Answered Lookups = iota
	// Refused says that there is no such name.
	Refused
	// Hanging answers nothing.
	Hanging
)

// Names is the name service of a cluster's nodes.
type Names struct {
	now  atomic.Uint32
	conn net.PacketConn
}

// OwnNames gives the cluster's nodes a name service of their own, from their next start on. It
// skips the test where that is not allowed.
func (c *Cluster) OwnNames(t testing.TB) *Names {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	conn, err := net.ListenPacket("udp", host+":53")
	if err != nil {
		t.Skipf("no name service here: %v", err)
	}
	names := &Names{conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		names.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	file := filepath.Join(c.dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+host+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		n.runUnder(t, "unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, file)
	}
	return names
}

// Become makes it answer so from now on.
func (s *Names) Become(l Lookups) { s.now.Store(uint32(l)) }

func (s *Names) serve() {
	b := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(b)
		if err != nil {
			return
		}
		l := Lookups(s.now.Load())
		if answer := answerTo(b[:n], l == Answered); answer != nil && l != Hanging {
			_, _ = s.conn.WriteTo(answer, from) // A caller that is gone asks no more.
		}
	}
}

// answerTo is the answer to a query (RFC 1035, section 4.1): loopback for a question of type A,
// nothing for another, or that there is no such name.
func answerTo(query []byte, known bool) []byte {
	const header = 12
	end := header
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // The name's end, the type and the class.
	if end > len(query) {
		return nil
	}
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	switch isA := query[end-3] == 1; {
	case !known:
		answer[3] |= 3
	case isA:
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return answer
}
