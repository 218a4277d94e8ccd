package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// devFolder is what the names of dev's temporary folders begin with.
	devFolder = "idnode-dev-"
	// devLock is the file in it that its process keeps locked. It is empty until it is
	// locked, so no process takes an unfinished folder for that of a dead process.
	devLock = "lock"
)

// makeDevFolder makes a temporary folder. remove removes it.
func makeDevFolder() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", devFolder); err != nil {
		return "", nil, err
	}
	lock, err := lockDevFolder(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(lock.Close(), os.RemoveAll(dir)) }, nil
}

// lockDevFolder marks a folder as this process's, until the lock is closed.
func lockDevFolder(dir string) (lock *os.File, err error) {
	lock, err = os.OpenFile(filepath.Join(dir, devLock), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = holdLock(lock); err == nil {
		_, err = fmt.Fprintln(lock, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// clearDevFolders removes the temporary folders of this user's killed processes. Failures are
// ignored: nothing depends on it.
func clearDevFolders() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), devFolder+"*"))
	for _, dir := range found {
		clearDevFolder(dir)
	}
}

// clearDevFolder removes a folder if it is this user's, and its process is dead.
func clearDevFolder(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if abandoned(dir, info) {
		_ = os.RemoveAll(dir)
	}
}
