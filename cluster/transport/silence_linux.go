package transport

import (
	"syscall"
	"time"
)

// silence is how long the kernel keeps a silent connection to itself. Members speak at once,
// so strangers that open connections and say nothing do not delay them: only connections
// that speak are in the port's queue.
const silence = 3 * time.Second

// keepSilent makes a port do so; without it silent connections only cost more.
func keepSilent(port uintptr) {
	_ = syscall.SetsockoptInt(int(port), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, int(silence/time.Second))
}
