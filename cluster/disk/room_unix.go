//go:build linux || darwin || freebsd

package disk

import (
	"fmt"
	"syscall"
)

// RoomOf returns the room for an ordinary user on the file system that the path is on.
func RoomOf(path string) (Room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return Room{}, fmt.Errorf("free space of %s: %w", path, err)
	}
	free, block := uint64(fs.Bavail), uint64(fs.Bsize)
	return Room{
		Bytes: free * block, AllBytes: (fs.Blocks - fs.Bfree + free) * block,
		Files: uint64(fs.Ffree), AllFiles: fs.Files,
	}, nil
}
