package freeport

import (
	"net"
	"testing"
)

// TestBase: the ports can be listened on, none comes twice, and they lie below those of
// outgoing connections.
func TestBase(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		base, err := Base(3)
		if err != nil {
			t.Fatal(err)
		}
		for port := base; port < base+3; port++ {
			if seen[port] || port < lowest || port >= lowest+blocks*size {
				t.Errorf("port %d, known %v", port, seen[port])
			}
			seen[port] = true
			l, err := net.Listen("tcp", address(port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
	if _, err := Base(size); err == nil {
		t.Error("more ports than a block has")
	}
}

// TestLoopback: addresses differ, and can be listened on.
func TestLoopback(t *testing.T) {
	seen := map[string]bool{}
	for range size / 2 {
		address, err := Loopback()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Errorf("%s came twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

// TestProcesses: two processes are never given the same port, and each goes round its
// own.
func TestProcesses(t *testing.T) {
	var one, other ports
	const round = size - 1
	mine := map[int]bool{}
	take := func(p *ports) int {
		t.Helper()
		port, err := p.next(1)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	for range round {
		mine[take(&one)] = true
	}
	if len(mine) != round {
		t.Errorf("%d ports of %d came twice", round-len(mine), round)
	}
	for range round {
		if port := take(&other); mine[port] {
			t.Fatalf("port %d belongs to two", port)
		}
		if port := take(&one); !mine[port] {
			t.Fatalf("port %d is one too many", port)
		}
	}
	_ = one.holder.Close()
	_ = other.holder.Close()
}
