//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// holdLock locks a file for as long as it is open. It waits: a process that checks the
// file holds the lock for a moment.
func holdLock(lock *os.File) error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) }

// abandoned says whether a folder is this user's, and its process is dead.
func abandoned(dir string, info fs.FileInfo) bool {
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(dir, devLock), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	info, err = lock.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// readInBackground lets a read of the terminal fail while the process is in its background. It would
// stop the process.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }
