package simulation

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/idnode/idnode/internal/service"
)

// databases are how many databases the clients use.
const databases = 2

// ceilings counts the databases for which the cluster keeps a ceiling of one
// node. Before the first one is there, a data directory that is set back looks
// like a new one, so no such fault is made.
type ceilings struct{ count atomic.Int32 }

// known says whether there is a ceiling for every database.
func (c *ceilings) known() bool { return c.count.Load() >= databases }

// ceilingHandler is a slog.Handler that looks for the message of the ceilings, and
// passes everything on.
type ceilingHandler struct {
	slog.Handler
	ceilings *ceilings
	looks    bool
}

// Enabled implements slog.Handler.
func (h ceilingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.looks && level == slog.LevelDebug || h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h ceilingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == service.MessageCeiling {
		h.ceilings.count.Add(1)
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h ceilingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h ceilingHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
