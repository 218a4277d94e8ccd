//go:build !(linux || darwin || freebsd)

package disk

import (
	"errors"
	"fmt"
)

// RoomOf fails: the room is not known on this system.
func RoomOf(path string) (Room, error) {
	return Room{}, fmt.Errorf("free space of %s: %w", path, errors.ErrUnsupported)
}
