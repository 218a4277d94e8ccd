package member

import (
	"context"
	"log/slog"
	"time"
)

// ComplainAfter is how often an unchanged problem is logged.
const ComplainAfter = 5 * time.Second

// Complaints logs a problem when it changes, and otherwise periodically.
type Complaints struct {
	Logger *slog.Logger
	Level  slog.Level
	last   string
	at     time.Time
}

// Log logs a problem, if it is time to.
func (c *Complaints) Log(what string, err error) {
	if text := err.Error(); text != c.last || time.Since(c.at) >= ComplainAfter {
		c.last, c.at = text, time.Now()
		c.Logger.Log(context.Background(), c.Level, what, "because", err)
	}
}
