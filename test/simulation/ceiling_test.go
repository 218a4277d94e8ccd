package simulation

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/idnode/idnode/server/etags"
)

// ceilingLimit is how soon a node has a ceiling for a database, with no fault
// meanwhile.
const ceilingLimit = 3 * time.Second

// ceilings are the databases for which the cluster keeps a ceiling of one node.
// Before it does, a data directory that is set back looks like a new one; and after
// that was noticed, the node gives ids above the ceiling until the cluster has raised
// it. In both cases no such fault is made.
type ceilings struct {
	mu   sync.Mutex
	kept map[string]bool
	// since has when the node was first asked for ids.
	since map[string]time.Time
}

// asked says that the node is about to be asked for ids in a database.
func (c *ceilings) asked(database string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = map[string]time.Time{}
	}
	database = cmp.Or(database, "default")
	if c.since[database].IsZero() {
		c.since[database] = time.Now()
	}
}

// keep says that there is a ceiling for a database.
func (c *ceilings) keep(database string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]bool{}
	}
	c.kept[database] = true
}

// forget begins a new node's.
func (c *ceilings) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept, c.since = nil, nil
}

// passed says that the node's ids go on above all ceilings.
func (c *ceilings) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = nil
}

// known says whether there is a ceiling for every database in which the node can
// have given ids. One that was asked for long enough ago, and for as long as there
// was no fault, must be there, or the node gives no ids.
func (c *ceilings) known(quiet time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for database, since := range c.since {
		if !c.kept[database] && min(quiet, time.Since(since)) <= ceilingLimit {
			return false
		}
	}
	return len(c.kept) > 0
}

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
	if r.Message == etags.MessageCeiling {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "database" {
				h.ceilings.keep(a.Value.String())
			}
			return true
		})
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
