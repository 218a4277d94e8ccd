//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// devFolder is what the names of dev's temporary folders begin with.
const devFolder = "idnode-dev-"

// makeDevFolder makes a temporary folder, which is locked as long as this process lives, and clears
// others. remove removes it.
func makeDevFolder() (dir string, remove func() error, err error) {
	clearDevFolders()
	if dir, err = os.MkdirTemp("", devFolder); err != nil {
		return "", nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// clearDevFolders removes the temporary folders of killed processes. A new one may not be locked
// yet. Failures are ignored: nothing depends on it.
func clearDevFolders() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), devFolder+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if lock, err := lockFolder(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}

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

// readInBackground lets a read of the terminal fail in the background, where it would stop the process.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }
