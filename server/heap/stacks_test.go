package heap

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// TestGoroutinesStartWithTheStackOfAHandler: as many goroutines wait as in a node.
func TestGoroutinesStartWithTheStackOfAHandler(t *testing.T) {
	const idle, handlerStack = 100, 8 << 10
	end := make(chan struct{})
	defer close(end)
	for range idle {
		go func() { <-end }()
	}
	release := RaiseStacks()
	collectUntil(t, func(size uint64) bool { return size == handlerStack })
	release()
	collectUntil(t, func(size uint64) bool { return size < handlerStack })
}

// collectUntil collects garbage until the size of a new stack is right.
func collectUntil(t *testing.T, right func(size uint64) bool) {
	t.Helper()
	size := []metrics.Sample{{Name: "/gc/stack/starting-size:bytes"}}
	for late := time.Now().Add(20 * time.Second); ; {
		runtime.GC()
		metrics.Read(size)
		switch {
		case right(size[0].Value.Uint64()):
			return
		case time.Now().After(late):
			t.Fatalf("goroutines start with %d bytes", size[0].Value.Uint64())
		}
	}
}
