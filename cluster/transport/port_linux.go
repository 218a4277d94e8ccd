package transport

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// strangersQueue bounds the strangers' connections that wait for their accept. It is short: a
	// connection in it is accepted within DefaultDialTimeout, at strangersPerSecond, and the kernel drops the others.
	strangersQueue = 64
	// maxKnown bounds the known addresses, and with them the kernel's program. The oldest go.
	maxKnown = 64
	// networkHeader and protocol are where a BPF program finds the IP header and its kind.
	networkHeader, protocol = 0xfff00000, 0xfffff000
)

// twoSockets is a port with two listening sockets: connections from known addresses, those of
// members, share no queue of the kernel and no accept loop with strangers'. So a member's
// connection is accepted at once, however many strangers connect. In a shared queue it would wait
// until theirs are accepted.
type twoSockets struct {
	*net.TCPListener // of the known addresses
	strangers        net.Listener
	mu               sync.Mutex
	known            []netip.Addr
}

// divide opens a port's second socket. Where the kernel does not let it, the first has all connections.
func divide(first *net.TCPListener) net.Listener {
	// Set when the first socket has the port: no other process gets in beside it unnoticed.
	share := func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }
	_ = control(first, func(fd uintptr) error { share(fd); return nil })
	second, err := openPort(first.Addr().String(), func(fd uintptr) { keepSilent(fd); share(fd) })
	if err != nil {
		return first
	}
	p := &twoSockets{TCPListener: first, strangers: second}
	shorten := func(fd uintptr) error { return unix.Listen(int(fd), strangersQueue) }
	if p.steer() != nil || control(second.(*net.TCPListener), shorten) != nil {
		_ = second.Close()
		return first
	}
	return p
}

// control calls f with a listener's descriptor.
func control(l *net.TCPListener, f func(fd uintptr) error) (err error) {
	raw, failed := l.SyscallConn()
	if failed != nil {
		return failed
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = f(fd) }), err)
}

func (p *twoSockets) Strangers() net.Listener { return p.strangers }

// Know adds the address of a member's connection to the known addresses.
func (p *twoSockets) Know(member net.Addr) {
	tcp, ok := member.(*net.TCPAddr)
	if !ok {
		return
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.known, address) {
		return
	}
	p.known = append(p.known, address)
	p.known = p.known[max(0, len(p.known)-maxKnown):]
	_ = p.steer() // Else the member's connections stay among the strangers'.
}

// steer has the kernel give connections from known addresses to the first socket. A classic BPF
// program needs no privilege.
func (p *twoSockets) steer() error {
	filter := program(p.known)
	return control(p.TCPListener, func(fd uintptr) error {
		return unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
}

// program returns 0, the number of the first socket, for a packet from one of these addresses, and
// 1 for all others. For each address it compares the kind of IP, and then the sender word by word:
// the first difference leads to the next address.
func program(known []netip.Addr) (p []unix.SockFilter) {
	for _, address := range known {
		kind, at := uint32(unix.ETH_P_IP), uint32(networkHeader+12)
		if address.Is6() {
			kind, at = unix.ETH_P_IPV6, networkHeader+8
		}
		words := [][2]uint32{{protocol, kind}}
		for b := address.AsSlice(); len(b) > 0; b, at = b[4:], at+4 {
			words = append(words, [2]uint32{at, binary.BigEndian.Uint32(b)})
		}
		for i, word := range words {
			toNext := uint8(2*(len(words)-i) - 1)
			p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: word[0]},
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: toNext, K: word[1]})
		}
		p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0})
	}
	return append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1})
}

// Close implements net.Listener.
func (p *twoSockets) Close() error { return errors.Join(p.TCPListener.Close(), p.strangers.Close()) }
