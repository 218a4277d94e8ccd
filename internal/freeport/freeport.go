// Package freeport finds addresses for servers that are about to be started: by
// tests, and by benchmarks that start their own cluster.
package freeport

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// The ports lie below those that Linux gives to outgoing connections, one of which
// could take a port between its being found free and its being listened on.
const (
	lowest = 20_000
	// blocks is how many blocks there are, and size how many ports each has. A process has one
	// block: test programs run side by side. It listens on the first port for as long as it
	// lives, so that no other process takes the block.
	blocks = 24
	size   = 500
)

var errNone = errors.New("freeport: no port is free")

// ports are those of a process. A port is given again when each of the others has been.
type ports struct {
	mu     sync.Mutex
	holder net.Listener
	// first is the first port of the block, and used how many have been given since it began.
	first, used int
}

var own ports

// Loopback returns a loopback address, host:port, without a listener. No other process
// gets it, and this one gets it again only after all others. It is safe for concurrent use.
func Loopback() (string, error) {
	base, err := Base(1)
	return address(base), err
}

// Base returns the first of n ports, one after the other, to which the same applies. n
// is less than 500.
func Base(n int) (int, error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for range size {
		base, err := own.next(n)
		if err != nil {
			return 0, err
		}
		if free(base, n) {
			return base, nil
		}
	}
	return 0, errNone
}

// next returns the next n ports of the block, whether they are free or not.
func (p *ports) next(n int) (int, error) {
	if n >= size || p.holder == nil && !p.hold() {
		return 0, errNone
	}
	if p.used+n > size {
		p.used = 1
	}
	base := p.first + p.used
	p.used += n
	return base, nil
}

// hold takes a block that no other process has, and says whether it could.
func (p *ports) hold() bool {
	begin := int(time.Now().UnixNano() % blocks)
	for i := range blocks {
		first := lowest + (begin+i)%blocks*size
		if l, err := net.Listen("tcp", address(first)); err == nil {
			p.holder, p.first, p.used = l, first, 1
			return true
		}
	}
	return false
}

func free(base, n int) bool {
	for port := base; port < base+n; port++ {
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Test is the part of *testing.T that For needs; package testing itself would come
// into every program.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// For returns an address as Loopback does, and fails the test if there is none.
func For(t Test) string {
	t.Helper()
	address, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
