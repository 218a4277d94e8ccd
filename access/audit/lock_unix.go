//go:build unix

package audit

import (
	"os"
	"syscall"
)

// lock keeps the file from other processes until it is closed.
func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
