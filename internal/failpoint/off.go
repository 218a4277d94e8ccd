//go:build !failpoint

package failpoint

import "time"

// Hit does nothing.
func Hit(Point) {}

// Now is the time.
func Now() time.Time { return time.Now() }
