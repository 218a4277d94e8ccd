//go:build !(linux || darwin || freebsd)

package store

import (
	"errors"
	"fmt"
)

// FreeBytes is not known on this system.
func FreeBytes(path string) (uint64, error) {
	return 0, fmt.Errorf("free space of %s: %w", path, errors.ErrUnsupported)
}
