package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// dialCalls opens a connection for calls to the node with this tag, which is to, and returns both ends.
func dialCalls(t *testing.T, from *Transport, tag string, to *Transport) (near, far net.Conn) {
	t.Helper()
	type accepted struct {
		net.Conn
		err error
	}
	got := make(chan accepted, 1)
	go func() {
		conn, err := to.Calls().Accept()
		got <- accepted{conn, err}
	}()
	near, err := from.DialCalls(t.Context(), raft.ServerID(idOf(tag)))
	must(t, err)
	a := <-got
	must(t, a.err)
	return near, a.Conn
}

// ended fails unless the other end of a connection was closed.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	if n, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the connection is open: read %d bytes, %v", n, err)
	}
}

// TestCallsSayWhoCalls: bytes go both ways, and the caller is the member that the handshake proved,
// with TLS and without.
func TestCallsSayWhoCalls(t *testing.T) {
	ca := newAuthority(t)
	for name, secured := range map[string]func(tag string) func(*Config){
		"plain": func(string) func(*Config) { return nil }, "TLS": ca.secured,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			a, callee := start(t, b, "A", secured("A")), start(t, b, "B", secured("B"))
			near, far := dialCalls(t, a, "B", callee)
			if got := far.RemoteAddr().String(); got != idOf("A") {
				t.Errorf("the caller is %s", got)
			}
			for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
				_, err := from.Write([]byte("hello"))
				must(t, err)
				text := make([]byte, 5)
				if _, err := io.ReadFull(to, text); err != nil || string(text) != "hello" {
					t.Errorf("%q, %v", text, err)
				}
			}
			_ = near.Close()
			ended(t, far)
		})
	}
}

// TestCallsOfStrangersAreRefused, as Raft's messages are.
func TestCallsOfStrangersAreRefused(t *testing.T) {
	ca := newAuthority(t)
	for name, tt := range map[string]struct {
		secured func(*Config)
		change  func(b *book)
		want    Status
	}{
		"no member":           {nil, func(b *book) { b.put(Peer{ID: idOf("A")}); delete(b.peers, idOf("A")) }, NotMember},
		"removed":             {nil, func(b *book) { b.put(Peer{ID: idOf("A"), Tag: "A", Removed: true}) }, Removed},
		"another certificate": {ca.secured("C"), func(*book) {}, WrongCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			own, others := newBook(), newBook()
			var told Status
			a := start(t, own, "A", func(c *Config) {
				if tt.secured != nil {
					tt.secured(c)
				}
				c.OnRefused = func(_ Peer, s Status) { told = s }
			})
			callee := start(t, others, "B", func(c *Config) {
				if tt.secured != nil {
					ca.secured("B")(c)
				}
			})
			p, _ := others.Lookup(callee.stream.cfg.LocalID)
			own.put(p)
			p, _ = own.Lookup(idOf("A"))
			others.put(p)
			tt.change(others)
			_, err := a.DialCalls(t.Context(), raft.ServerID(idOf("B")))
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Status != tt.want || told != tt.want {
				t.Errorf("%v, and the process is told %v; want %v", err, told, tt.want)
			}
		})
	}
}

// TestAnUnknownPurposeIsAnotherVersion: a node of another program, with further purposes of
// connections, gets that answer, and is not taken for gone.
func TestAnUnknownPurposeIsAnotherVersion(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", nil)
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: "127.0.0.1:1"})
	for _, why := range []purpose{forCalls + 1, 255} {
		g := greetingOf(t, "B", "A")
		g.Purpose = why
		conn := connect(t, a)
		_, err := conn.Write(encode(g))
		must(t, err)
		if reply, err := readReply(conn); err != nil || reply.Status != OtherVersion || reply.Disk != (greetingReply{}).Disk {
			t.Errorf("purpose %d: %+v, %v", why, reply, err)
		}
		ended(t, conn)
	}
}

// TestCallsHideNoLostLeader: a leader's connection for calls is no sign of its leadership: the end
// of its last connection for messages is noticed beside it, and its own end is ignored.
func TestCallsHideNoLostLeader(t *testing.T) {
	b := newBook()
	leader, follower := start(t, b, "A", nil), start(t, b, "B", nil)
	near, far := dialCalls(t, leader, "B", follower)
	leads(t, leader, follower, "A", 3)
	second, other := dialCalls(t, leader, "B", follower)
	_ = second.Close()
	ended(t, other)
	_ = other.Close()
	select {
	case <-follower.Lost():
		t.Fatal("the end of a connection for calls is taken for the leader's")
	case <-time.After(50 * time.Millisecond):
	}
	if !follower.Contact().Connected {
		t.Fatal("the leader is not connected")
	}
	leader.NetworkTransport.CloseStreams()
	leader.stream.conns.closeIf(func(c *conn) bool { return c != near })
	select {
	case <-follower.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the end of the leader's messages was not noticed")
	}
	if follower.Contact().Connected {
		t.Error("the connection for calls counts as the leader's")
	}
	_, err := near.Write([]byte("x"))
	must(t, err)
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection for calls has ended: %v", err)
	}
}

// TestDisconnectEndsCalls, at both ends, of one member alone.
func TestDisconnectEndsCalls(t *testing.T) {
	b := newBook()
	a, callee, c := start(t, b, "A", nil), start(t, b, "B", nil), start(t, b, "C", nil)
	near, _ := dialCalls(t, a, "B", callee)
	from, _ := dialCalls(t, callee, "A", a)
	other, far := dialCalls(t, c, "B", callee)
	callee.Disconnect(raft.ServerID(idOf("A")))
	ended(t, near)
	if _, err := from.Write([]byte("x")); err == nil {
		t.Error("the connection that it dialled is open")
	}
	_, err := other.Write([]byte("x"))
	must(t, err)
	text := make([]byte, 1)
	if _, err := far.Read(text); err != nil || !bytes.Equal(text, []byte("x")) {
		t.Errorf("another member's connection: %q, %v", text, err)
	}
	must(t, callee.Close())
	ended(t, other)
	if _, err := c.DialCalls(t.Context(), raft.ServerID(idOf("B"))); err == nil || strings.Contains(err.Error(), "refused the connection:") {
		t.Errorf("after the end: %v", err)
	}
}
