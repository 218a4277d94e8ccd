package main

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

// calm is a log handler that drops warnings while the nodes of dev start and stop. A node that
// starts before the others, or stops after them, rightly warns of what is missing; if all of
// them do so on purpose, that only hides the warnings that matter. Errors pass, but not the Raft
// library's own lines of any level: a node logs the consequences itself.
type calm struct {
	slog.Handler
	// expected means that warnings are expected; all handlers derived from one share it.
	expected *atomic.Bool
}

// newCalm returns a handler that expects warnings at first.
func newCalm(h slog.Handler) calm {
	c := calm{Handler: h, expected: new(atomic.Bool)}
	c.expected.Store(true)
	return c
}

// Enabled implements slog.Handler.
func (c calm) Enabled(ctx context.Context, level slog.Level) bool {
	if c.expected.Load() && level < slog.LevelError {
		return false
	}
	return c.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	if slices.ContainsFunc(attrs, slog.String("part", "raft").Equal) {
		return slog.DiscardHandler
	}
	return calm{Handler: c.Handler.WithAttrs(attrs), expected: c.expected}
}
