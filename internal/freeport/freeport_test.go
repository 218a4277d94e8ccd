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
			if seen[port] || port < lowest || port >= lowest+count {
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
	if _, err := Base(count + 1); err == nil {
		t.Error("more ports than there are")
	}
}

// TestLoopback: addresses differ, and can be listened on.
func TestLoopback(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
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
