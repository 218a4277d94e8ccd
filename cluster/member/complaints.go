package member

import (
	"context"
	"log/slog"
	"time"
)

// ComplainAfter is the interval at which an unchanged problem is logged again.
const ComplainAfter = 5 * time.Second

// Complaints logs a problem when it changes, and otherwise every ComplainAfter. It is not
// safe for concurrent use.
type Complaints struct {
	Logger *slog.Logger
	Level  slog.Level
	last   string
	at     time.Time
}

// Log logs a problem if it changed, or if ComplainAfter is over. what is the log message.
func (c *Complaints) Log(what string, err error) {
	if text := err.Error(); text != c.last || time.Since(c.at) >= ComplainAfter {
		c.last, c.at = text, time.Now()
		c.Logger.Log(context.Background(), c.Level, what, "because", err)
	}
}
