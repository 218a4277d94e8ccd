package transport

import (
	"syscall"
	"time"
)

// silence is the time for which the kernel defers the accept of a silent connection. Members send at
// once, so strangers that open connections and send nothing do not delay them: only
// connections with data are in the port's queue.
const silence = 3 * time.Second

// keepSilent sets silence on a port. Without it silent connections cost more.
func keepSilent(port uintptr) {
	_ = syscall.SetsockoptInt(int(port), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, int(silence/time.Second))
}
