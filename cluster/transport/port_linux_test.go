package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// openTwo opens a port of two sockets, which the test closes.
func openTwo(t testing.TB, address string) *twoSockets {
	t.Helper()
	port, err := ListenTCP(address)
	must(t, err)
	two, ok := port.(*twoSockets)
	if !ok {
		t.Fatal("the kernel does not give it two sockets")
	}
	t.Cleanup(func() { _ = two.Close() })
	return two
}

func addressOf(ip string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1))
}

// TestKnownAddressesHaveTheirOwnQueue: which socket of a port gets a connection.
func TestKnownAddressesHaveTheirOwnQueue(t *testing.T) {
	var more []string
	for i := range byte(maxKnown) {
		more = append(more, netip.AddrFrom4([4]byte{10, 0, 0, i}).String())
	}
	for _, c := range []struct {
		name, listen, to, from string
		known                  []string
		member                 bool
	}{
		{"nobody is known", "127.0.0.1:0", "127.0.0.1", "127.0.0.2", nil, false},
		{"the one that is known", "127.0.0.1:0", "127.0.0.1", "127.0.0.2", []string{"127.0.0.2"}, true},
		{"one of two", "127.0.0.1:0", "127.0.0.1", "127.0.0.3", []string{"127.0.0.2", "127.0.0.3"}, true},
		{"another", "127.0.0.1:0", "127.0.0.1", "127.0.0.4", []string{"127.0.0.2", "127.0.0.3"}, false},
		{"the oldest of too many", "127.0.0.1:0", "127.0.0.1", "127.0.0.2", append([]string{"127.0.0.2"}, more...), false},
		{"the second of too many", "127.0.0.1:0", "127.0.0.1", "127.0.0.3", append([]string{"127.0.0.2", "127.0.0.3"}, more[1:]...), true},
		{"IPv4 at a port of both", ":0", "127.0.0.1", "127.0.0.2", []string{"::1", "127.0.0.2"}, true},
		{"as IPv6 writes it", ":0", "127.0.0.1", "127.0.0.2", []string{"::ffff:127.0.0.2"}, true},
		{"IPv6 at a port of both", ":0", "::1", "::1", []string{"127.0.0.2", "::1"}, true},
		{"IPv6", "[::1]:0", "::1", "::1", []string{"::1"}, true},
		{"other first words of IPv6", "[::1]:0", "::1", "::1", []string{"fd00::1"}, false},
		{"another last word of IPv6", "[::1]:0", "::1", "::1", []string{"::2"}, false},
		{"the bytes of an IPv4 address in IPv6", "[::1]:0", "::1", "::1", []string{"0.0.0.0"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := openTwo(t, c.listen)
			for _, ip := range c.known {
				port.Know(addressOf(ip))
			}
			var accepting sync.WaitGroup
			defer accepting.Wait()
			defer port.Close()
			members := make(chan bool, 2)
			accept := func(l net.Listener, member bool) {
				if conn, err := l.Accept(); err == nil {
					_ = conn.Close()
					members <- member
				}
			}
			accepting.Go(func() { accept(port.TCPListener, true) })
			accepting.Go(func() { accept(port.Strangers(), false) })
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
			conn, err := from.DialContext(t.Context(), "tcp", net.JoinHostPort(c.to, strconv.Itoa(port.Addr().(*net.TCPAddr).Port)))
			must(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte{22})
			must(t, err)
			if got := <-members; got != c.member {
				t.Errorf("a member's queue gets it: %v, want %v", got, c.member)
			}
		})
	}
}

// TestAPortHasOneProcess: the sockets share their port with nobody else.
func TestAPortHasOneProcess(t *testing.T) {
	port := openTwo(t, "127.0.0.1:0")
	if second, err := ListenTCP(port.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("opened again: %v, %v", second, err)
	}
	must(t, port.Close())
	openTwo(t, port.Addr().String())
}

// TestStrangersAreAcceptedSlowly: of connections that strangers begin, few are accepted, and a member's at once.
func TestStrangersAreAcceptedSlowly(t *testing.T) {
	a, member, counts := startAttacked(t)
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	begin := time.Now()
	for range 400 {
		flood.Go(func() {
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}
			if conn, err := from.DialContext(ctx, "tcp", a.stream.cfg.Listener.Addr().String()); err == nil {
				defer conn.Close()
				_, _ = conn.Write([]byte{22})
				<-ctx.Done()
			}
		})
	}
	eventually(t, "strangers are accepted", func() bool { return counts.strangers.Load() > strangersBurst })
	must(t, member.Greet(t.Context(), raft.ServerID(idOf("A"))))
	most := 2 + strangersBurst + strangersPerSecond*time.Since(begin).Seconds()
	if n := counts.strangers.Load(); float64(n) > most || counts.accepted.Load() != 1 {
		t.Errorf("%d strangers were accepted, %.0f at most, and %d members, want 1", n, most, counts.accepted.Load())
	}
}
