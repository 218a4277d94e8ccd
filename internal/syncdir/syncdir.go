//go:build !windows

// Package syncdir makes changes of names in a directory durable: files made, renamed
// and removed.
package syncdir

import (
	"errors"
	"os"
)

// Sync returns once all changes of names in the directory are on disk.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
