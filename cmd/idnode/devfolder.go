package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// devFolder is what the names of dev's temporary folders begin with.
const devFolder = "idnode-dev-"

// makeDevFolder makes a temporary folder, which is locked as long as this process lives. remove
// removes it.
func makeDevFolder() (dir string, remove func() error, err error) {
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
