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
	count  = 12_000
	// size is how many ports a block has. Its first one is listened on for as long as
	// the process lives, and makes the others that process's own: test programs run
	// side by side.
	size = 100
	// most is how many blocks a process takes: its first ports are long free again then.
	most = 10
)

var errNone = errors.New("freeport: no port is free")

// ports are the blocks of a process. A port is given again when each of the others has
// been. It is safe for concurrent use.
type ports struct {
	mu     sync.Mutex
	blocks []block
	// current is the block in use, used how many of its ports have been.
	current, used int
}

// block is the ports that follow the one that holds it.
type block struct {
	holder net.Listener
	first  int
}

var own ports

// Loopback returns a loopback address, host:port, without a listener. No other process
// gets it, and this one gets it again only after 990 others. It is safe for concurrent use.
func Loopback() (string, error) {
	base, err := Base(1)
	return address(base), err
}

// Base returns the first of n ports, one after the other, to which the same applies. n
// is less than a hundred.
func Base(n int) (int, error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for range count {
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

// next returns the next n ports of a block, whether they are free or not.
func (p *ports) next(n int) (int, error) {
	if n >= size {
		return 0, errNone
	}
	if len(p.blocks) == 0 || p.used+n > size {
		p.current, p.used = p.current+1, 1
		if p.current >= len(p.blocks) && !p.hold() {
			p.current = 0
		}
		if len(p.blocks) == 0 {
			return 0, errNone
		}
	}
	base := p.blocks[p.current].first + p.used
	p.used += n
	return base, nil
}

// hold takes one more block, which no other process has, and says whether it could.
func (p *ports) hold() bool {
	if len(p.blocks) == most {
		return false
	}
	begin := int(time.Now().UnixNano() % count)
	for i := range count / size {
		first := lowest + (begin/size+i)*size%count
		if l, err := net.Listen("tcp", address(first)); err == nil {
			p.blocks = append(p.blocks, block{l, first})
			p.current = len(p.blocks) - 1
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
