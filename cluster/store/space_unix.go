//go:build linux || darwin || freebsd

package store

import (
	"fmt"
	"syscall"
)

// FreeBytes returns how many bytes an ordinary user may still write to the file
// system that the path is on.
func FreeBytes(path string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}
