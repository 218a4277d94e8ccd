//go:build !failpoint

package failpoint

import "time"

// Hit does nothing.
func Hit(Point) {}

// Tuned is empty.
func Tuned() Tuning { return Tuning{} }

// Now is the time.
func Now() time.Time { return time.Now() }
