// Package freeport finds addresses for servers that are about to be started: by
// tests, and by benchmarks that start their own cluster.
package freeport

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// The ports lie below those that Linux gives to outgoing connections, one of which
// could take a port between its being found free and its being listened on.
const (
	lowest = 20_000
	count  = 12_000
)

// Each process begins somewhere else, and then takes each port once.
var (
	first = time.Now().UnixNano() % count
	taken atomic.Int64
)

var errNone = errors.New("freeport: no port is free")

// Loopback returns a loopback address, host:port, that nobody listens on and that
// it returned to nobody else in this process. It is safe for concurrent use.
func Loopback() (string, error) {
	base, err := Base(1)
	return address(base), err
}

// Base returns the first of n ports, one after the other, to which the same applies.
func Base(n int) (int, error) {
	for range count {
		begin := (first + taken.Add(int64(n)) - int64(n)) % count
		if base := lowest + int(begin); begin+int64(n) <= count && free(base, n) {
			return base, nil
		}
	}
	return 0, errNone
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
