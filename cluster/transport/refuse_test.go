package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
)

func mustID(t testing.TB, s string) nodeid.ID {
	t.Helper()
	i, err := nodeid.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// greetingOf is the greeting of the member with one tag to another.
func greetingOf(t testing.TB, from, to string) greeting {
	return greeting{forRaft, clusterID(testCluster), mustID(t, idOf(from)), mustID(t, idOf(to)), newProcess(), trusted}
}

// connect opens a bare connection with a deadline.
func connect(t testing.TB, tr *Transport) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", tr.stream.cfg.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// cutOff fails unless connections have ended, although their time is not up.
func cutOff(t testing.TB, conns []net.Conn) {
	t.Helper()
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Fatalf("still open: %v", err)
		}
	}
}

// vote is an RPC as the library writes it, as far as anybody gets to read it.
var vote = append([]byte{1}, bytes.Repeat([]byte{0x81}, 100)...)

func TestStrangersAreRefused(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", nil)
	start(t, b, "B", nil)
	b.put(Peer{ID: idOf("C"), Tag: "C", Address: "127.0.0.1:1"})
	b.put(Peer{ID: idOf("D"), Tag: "D", Address: "127.0.0.1:1", Removed: true})
	for _, c := range []struct {
		name   string
		change func(*greeting)
		want   Status
	}{
		{"another cluster", func(g *greeting) { g.Cluster[0]++ }, WrongCluster},
		{"another target", func(g *greeting) { g.Target = mustID(t, idOf("C")) }, WrongTarget},
		{"an unknown dialler", func(g *greeting) { g.Dialler[0]++ }, NotMember},
		{"a removed dialler", func(g *greeting) { g.Dialler = mustID(t, idOf("D")) }, Removed},
		{"a dialler with our own id", func(g *greeting) { g.Dialler = g.Target }, Impostor},
		{"a second process with the id of a member that is up", func(g *greeting) { g.Dialler = mustID(t, idOf("B")) }, Impostor},
		{"a member that cannot be asked back", func(*greeting) {}, OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := greetingOf(t, "C", "A")
			c.change(&g)
			conn := connect(t, a)
			_, _ = conn.Write(append(encode(g), vote...))
			got, err := readReply(conn)
			if err != nil || got.Status != c.want || got.ID != mustID(t, idOf("A")) {
				t.Fatalf("answer %+v, %v, want %v", got, err, c.want)
			}
			if c.want == OK {
				return
			}
			if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) && !isReset(err) {
				t.Errorf("the connection stays open: %v", err)
			}
			select {
			case rpc := <-a.Consumer():
				t.Errorf("Raft got %T from a stranger", rpc.Command)
			default:
			}
		})
	}
}

func isReset(err error) bool { return strings.Contains(err.Error(), "reset by peer") }

// TestWhatIsNoGreetingIsCutOff sends the bytes of port scanners, web browsers and attackers. The
// connection ends without an answer.
func TestWhatIsNoGreetingIsCutOff(t *testing.T) {
	t.Parallel()
	a := start(t, newBook(), "A", func(c *Config) { c.AcceptTimeout = 300 * time.Millisecond })
	for name, sent := range map[string][]byte{
		"nothing":         nil,
		"a web request":   []byte("GET / HTTP/1.1\r\n\r\n"),
		"a forged vote":   vote,
		"half a greeting": encode(greetingOf(t, "B", "A"))[:20],
		"a huge frame":    bytes.Repeat([]byte{0xff}, 1<<20),
		"another purpose": append([]byte(opening), bytes.Repeat([]byte{9}, binary.Size(greeting{}))...),
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, a)
			_, _ = conn.Write(sent)
			got, err := io.ReadAll(conn)
			if len(got) > 0 || err != nil && !isReset(err) {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

func TestOldestSilentConnectionMakesRoom(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", func(c *Config) { c.MaxPending, c.AcceptTimeout = 4, time.Hour })
	var silent []net.Conn
	for range 12 {
		silent = append(silent, connect(t, a))
	}
	cutOff(t, silent[:8])
	// A member gets in although all places are taken.
	tr := start(t, b, "B", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := tr.stream.dial(ctx, idOf("A"), forRaft, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestAFloodOfOneHostClosesItsOwn: a stranger that fills all places for handshakes does
// not close the connection of a member whose handshake takes some round trips.
func TestAFloodOfOneHostClosesItsOwn(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", func(c *Config) { c.MaxPending, c.AcceptTimeout = 4, time.Hour })
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: "127.0.0.1:1"})
	member := connect(t, a)
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var flood []net.Conn
	for range 12 {
		c, err := stranger.DialContext(t.Context(), "tcp", a.stream.cfg.Listener.Addr().String())
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Skip("this system has one loopback address")
		}
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		flood = append(flood, c)
	}
	cutOff(t, flood[:8])
	_, err := member.Write(encode(greetingOf(t, "B", "A")))
	must(t, err)
	if got, err := readReply(member); err != nil || got.Status != OK {
		t.Errorf("the member's answer: %+v, %v", got, err)
	}
}

// TestSilenceTakesNoPlaceOfAHandshake: silent connections do not close that of a member of
// the same host which has begun its handshake.
func TestSilenceTakesNoPlaceOfAHandshake(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", func(c *Config) { c.MaxPending, c.AcceptTimeout = 4, time.Hour })
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: "127.0.0.1:1"})
	member, says := connect(t, a), encode(greetingOf(t, "B", "A"))
	_, err := member.Write(says[:9])
	must(t, err)
	eventually(t, "its handshake has begun", func() bool {
		a.stream.pending.mu.Lock()
		defer a.stream.pending.mu.Unlock()
		return a.stream.pending.oldest.Len() == 1
	})
	var silent []net.Conn
	for range 12 {
		silent = append(silent, connect(t, a))
	}
	cutOff(t, silent[:8])
	_, err = member.Write(says[9:])
	must(t, err)
	if got, err := readReply(member); err != nil || got.Status != OK {
		t.Errorf("the member's answer: %+v, %v", got, err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestDialTellsWhyItWasRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(mine, theirs *book)
		want   Status
	}{
		{"another node is at the address", func(mine, _ *book) {
			a, _ := mine.Lookup(idOf("A"))
			mine.put(Peer{ID: idOf("A"), Tag: "A", Address: "127.0.0.1:1"})
			mine.put(Peer{ID: idOf("C"), Tag: "C", Address: a.Address})
		}, WrongTarget},
		{"not known there", func(_, theirs *book) { delete(theirs.peers, idOf("B")) }, NotMember},
		{"removed there", func(_, theirs *book) { theirs.put(Peer{ID: idOf("B"), Tag: "B", Removed: true}) }, Removed},
	} {
		t.Run(c.name, func(t *testing.T) {
			mine, theirs := newBook(), newBook()
			start(t, theirs, "A", nil)
			a, _ := theirs.Lookup(idOf("A"))
			mine.put(a)
			told := make(chan Status, 1)
			dialler := start(t, mine, "B", func(cfg *Config) {
				cfg.OnRefused = func(_ Peer, s Status) { told <- s }
			})
			theirs.put(Peer{ID: idOf("B"), Tag: "B", Address: dialler.stream.cfg.Listener.Addr().String()})
			c.change(mine, theirs)
			target := idOf("A")
			if c.want == WrongTarget {
				target = idOf("C")
			}
			err := dialler.NetworkTransport.TimeoutNow(raft.ServerID(target), "", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Status != c.want {
				t.Fatalf("dial: %v, want %v", err, c.want)
			}
			if got := <-told; got != c.want {
				t.Errorf("told %v, want %v", got, c.want)
			}
		})
	}
}

func TestUnknownPeerIsNotDialled(t *testing.T) {
	tr := start(t, newBook(), "A", nil)
	err := tr.NetworkTransport.TimeoutNow(raft.ServerID(idOf("Z")), "127.0.0.1:1", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
	if !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("%v", err)
	}
}

func TestCertificateMustNameTheMember(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	for _, c := range []struct {
		name   string
		server func(*Config)
		client func(*Config)
		ok     bool
	}{
		{"both name their tags", ca.secured("A"), ca.secured("B"), true},
		{"the dialler's names another member", ca.secured("A"), ca.secured("A"), false},
		{"the dialler's is of another authority", ca.secured("A"), func(cfg *Config) {
			other.secured("B")(cfg)
			ca.trusted(cfg)
		}, false},
		{"the dialler has none", ca.secured("A"), func(cfg *Config) {
			ca.secured("B")(cfg)
			cfg.TLS.Client = func(string) (*tls.Config, error) { return &tls.Config{RootCAs: ca.pool()}, nil }
		}, false},
		{"the dialler has none, and none is demanded", func(cfg *Config) {
			ca.secured("A")(cfg)
			lax, _ := cfg.TLS.Server()
			lax.ClientAuth = tls.VerifyClientCertIfGiven
			cfg.TLS.Server = func() (*tls.Config, error) { return lax, nil }
		}, func(cfg *Config) {
			ca.secured("B")(cfg)
			cfg.TLS.Client = func(string) (*tls.Config, error) { return &tls.Config{RootCAs: ca.pool()}, nil }
		}, false},
		{"the dialler speaks no TLS", ca.secured("A"), nil, false},
		{"the target's names another member", ca.secured("B"), ca.secured("B"), false},
		{"the target speaks no TLS", nil, ca.secured("B"), false},
		{"the dialler verifies nothing", ca.secured("B"), func(cfg *Config) {
			ca.secured("B")(cfg)
			lax, _ := cfg.TLS.Client("")
			lax.InsecureSkipVerify = true
			cfg.TLS.Client = func(string) (*tls.Config, error) { return lax, nil }
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook()
			start(t, b, "A", c.server)
			tr := start(t, b, "B", c.client)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			conn, err := tr.stream.dial(ctx, idOf("A"), forRaft, 0)
			if (err == nil) != c.ok {
				t.Fatalf("dial: %v", err)
			}
			if err == nil {
				_ = conn.Close()
			}
		})
	}
}

// trusted makes a Config's dialling side trust this authority.
func (a *authority) trusted(cfg *Config) {
	inner := cfg.TLS.Client
	cfg.TLS.Client = func(tag string) (*tls.Config, error) {
		conf, err := inner(tag)
		conf.RootCAs = a.pool()
		return conf, err
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(encode(greeting{Purpose: forProbe}))
	f.Add(encode(greetingReply{Status: Removed}))
	f.Add(encode(greeting{Disk: trusted}))
	f.Add(encode(greetingReply{Disk: witness.DiskState{Last: 7}}))
	f.Add([]byte(opening))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readGreeting(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, encodeFields(g)) {
			t.Errorf("%x was read as %+v", b, g)
		}
		if a, err := readReply(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, encodeFields(a)) {
			t.Errorf("%x was read as %+v", b, a)
		}
	})
}

// removedAfter is a Directory where a member is removed once it was looked up.
type removedAfter struct {
	*book
	id    string
	looks atomic.Int32
}

func (r *removedAfter) Lookup(id string) (Peer, bool) {
	p, ok := r.book.Lookup(id)
	p.Removed = p.Removed || id == r.id && r.looks.Add(1) > 1
	return p, ok
}

// TestARemovalDuringTheGreeting: the connection of a member that is removed after its greeting
// was judged, and before the connection is tracked, is closed.
func TestARemovalDuringTheGreeting(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", func(c *Config) { c.Directory = &removedAfter{book: b, id: idOf("B")} })
	dialled, err := start(t, b, "B", nil).stream.dial(t.Context(), idOf("A"), forRaft, 0)
	must(t, err)
	must(t, dialled.SetReadDeadline(time.Now().Add(20*time.Second)))
	if n, err := dialled.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("its connection is open: read %d bytes, %v", n, err)
	}
	eventually(t, "no connection", func() bool { return open(a) == 0 })
}

// TestManyStrangersDoNotFillTheLog: a limiter with maxLimiterKeys keys passes no other key until
// the interval of one of them is over.
func TestManyStrangersDoNotFillTheLog(t *testing.T) {
	l := newLimiter(time.Minute)
	for i := range 10 * maxLimiterKeys {
		if passed := l.allow(strconv.Itoa(i)); passed != (i < maxLimiterKeys) {
			t.Fatalf("key %d passes: %v", i, passed)
		}
	}
	l.last["0"] = time.Now().Add(-time.Hour)
	if !l.allow("late") || l.allow("later") {
		t.Error("one key whose interval is over must make room for one key")
	}
}
