// Package cputime measures processor time, for tests that hold code to a speed on a
// machine that does other things too.
package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread returns the processor time that the calling thread has used: what other
// processes do on the machine does not show in it. The caller keeps to its thread
// (runtime.LockOSThread).
func Thread() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
