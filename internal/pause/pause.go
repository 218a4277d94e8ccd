// Package pause waits for a time that may be cut short.
package pause

import (
	"context"
	"time"
)

// For waits for d. It returns false if ctx has ended, at once when it ends.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
