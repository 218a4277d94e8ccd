package main

import (
	"context"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/idnode/idnode/internal/logqueue"
)

// nodeLogger returns the logger of the nodes of this process. What else the command says goes
// the same way from here on. A write for which there is no reader any more fails: its SIGPIPE
// would end the process (os/signal, "SIGPIPE").
func (a *app) nodeLogger(level, format string) (*slog.Logger, error) {
	direct, err := newLogger(a.stderr, level, format)
	if err != nil {
		return nil, &usageError{err: err}
	}
	signal.Ignore(syscall.SIGPIPE)
	a.log = logqueue.New(a.stderr, func(leftOut int) error {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "the log's reader did not keep up, and lines are missing", 0)
		r.Add("lines_left_out", leftOut)
		return direct.Handler().Handle(context.Background(), r)
	})
	a.stderr = a.log
	return newLogger(a.stderr, level, format)
}
