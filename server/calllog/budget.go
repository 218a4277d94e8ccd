// Package calllog bounds how much the logs of failed calls write: a node without
// a quorum refuses some ten thousand calls a second, and its log must stay
// readable, and its disk free. Each API decides about the content of a line, but of that for a panic.
package calllog

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// MaxLines is how many lines per second a Budget allows.
const MaxLines = 5

// Budget allows MaxLines per second. The zero value is ready, and safe for concurrent use.
type Budget struct {
	mu     sync.Mutex
	since  time.Time
	lines  int
	silent int
}

// Allow says whether a line may be written at now, and how many were left out before it.
func (b *Budget) Allow(now time.Time) (silent int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.since) >= time.Second {
		b.since, b.lines = now, 0
	}
	if b.lines >= MaxLines {
		b.silent++
		return 0, false
	}
	b.lines++
	silent, b.silent = b.silent, 0
	return silent, true
}

// Line returns the attributes of a line, with how many lines were left out before it, and
// whether it may be written. A line at debug always may.
func (b *Budget) Line(level slog.Level, now time.Time, attrs ...slog.Attr) (line []slog.Attr, ok bool) {
	if level <= slog.LevelDebug {
		return attrs, true
	}
	silent, ok := b.Allow(now)
	if silent > 0 {
		attrs = append(attrs, slog.Int("lines_left_out", silent))
	}
	return attrs, ok
}

// Panicked logs a panic, from the function that recovered from it, and returns it as an error.
func Panicked(ctx context.Context, logger *slog.Logger, p any) error {
	logger.ErrorContext(ctx, "a call panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return fmt.Errorf("panic: %v", p)
}
