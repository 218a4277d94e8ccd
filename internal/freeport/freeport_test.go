package freeport

import (
	"net"
	"testing"
)

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
