//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// lockFolder locks a folder of this user for as long as it is open, unless another process has.
func lockFolder(dir string) (*os.File, error) {
	lock, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	info, err := lock.Stat()
	if err == nil && info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		err = os.ErrPermission
	}
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// readInBackground lets a read of the terminal fail while the process is in its background. It would
// stop the process.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }
