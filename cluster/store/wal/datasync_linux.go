package wal

import (
	"os"
	"syscall"
)

// datasync leaves out metadata that is not needed, such as the modification time.
func datasync(f *os.File) error {
	return os.NewSyscallError("fdatasync", syscall.Fdatasync(int(f.Fd())))
}
