// Package raftlogger lets the Raft library, which logs through hclog, write to
// the process's slog logger.
//
// It owns the translation of levels, names and values, and the list of lines that the
// library logs as errors although they are routine: a peer that is down causes several a
// second, which hide a real error. It does not decide where log lines go, nor how they
// are formatted.
package raftlogger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// everyday are the prefixes of lines that repeat while a peer is down, cut off or
// restarting, or that come with every leadership transfer. They are logged at Debug: a
// lost peer still shows in the library's "failed to contact", a change of leader in
// "heartbeat timeout reached" and "election won". A node without a quorum starts an
// election several times a second; package cluster logs once that the quorum is out of
// reach.
var everyday = []string{
	"Election timeout reached, restarting election",
	"accepted connection",
	"appendEntries rejected, sending older logs",
	"entering candidate state",
	"failed to appendEntries",
	"failed to decode incoming command",
	"failed to flush response",
	"failed to get previous log",
	"failed to heartbeat",
	"failed to make requestVote RPC",
	"failed to pipeline appendEntries",
	"nothing new to snapshot",
	"peer has newer term, stopping replication",
	"pre-vote campaign failed, waiting for election timeout",
	"rejecting pre-vote request since we have a leader",
	"stream layer is closed",
}

// New returns an hclog logger whose lines go to the given logger. It is safe
// for concurrent use, and filters nothing itself: the level is the slog
// handler's.
func New(logger *slog.Logger) hclog.Logger {
	// The intercepting logger itself is silent: it only feeds the sink, and
	// supplies the names and implied values of sub-loggers.
	silent := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	silent.RegisterSink(sink{logger})
	return silent
}

type sink struct{ logger *slog.Logger }

func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	ctx, lvl := context.Background(), levelOf(level, msg)
	if !s.logger.Enabled(ctx, lvl) {
		return
	}
	attrs := make([]any, 0, len(args)+2)
	if name != "" {
		attrs = append(attrs, "source", name)
	}
	for _, arg := range args { // Keys and values alternate, as slog's do.
		attrs = append(attrs, valueOf(arg))
	}
	s.logger.Log(ctx, lvl, msg, attrs...)
}

func levelOf(level hclog.Level, msg string) slog.Level {
	if slices.ContainsFunc(everyday, func(beginning string) bool { return strings.HasPrefix(msg, beginning) }) {
		return slog.LevelDebug
	}
	switch level {
	case hclog.Trace, hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// valueOf resolves hclog's lazy formats, and writes errors and text-like bytes as text,
// so that all slog handlers show them alike.
func valueOf(value any) any {
	switch v := value.(type) {
	case hclog.Format:
		return fmt.Sprintf(v[0].(string), v[1:]...) // As hclog's own loggers do.
	case error:
		return v.Error()
	case []byte:
		return string(v)
	case fmt.Stringer:
		return v.String()
	default:
		return value
	}
}
