package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/logqueue"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
	"github.com/idnode/idnode/server/tracing"
)

func newNode(cfg *config.Config, log *slog.Logger) (server, error) {
	traces, err := tracing.Start(context.Background(), tracing.Config{
		Version: versionText(), Instance: cmp.Or(cfg.Tag, cfg.AdvertiseGRPC), Getenv: os.Getenv, Logger: log,
	})
	if err != nil {
		return nil, &usageError{err} // Variables alone decide.
	}
	return node.New(node.Options{Config: cfg, Logger: log, Version: versionText(), Tracing: traces, Now: failpoint.Now})
}

// refusals are the errors of a node that its cluster does not take: none goes away by waiting.
var refusals = []error{
	member.ErrRemoved, member.ErrTagTaken, member.ErrNotInCluster, member.ErrOtherCluster, member.ErrJoinDenied, member.ErrTooOld,
	member.ErrOtherVersion, fsm.ErrWrongCluster,
}

// endCode is the exit code of a node that ended by itself. By it service managers start a node
// again, or not, if a person must look at the node.
func endCode(err error) int {
	isOne := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is[*usageError](err), isOne(config.ErrAlone), isOne(config.ErrUnguarded), isOne(member.ErrOtherNode), isOne(node.ErrCertificate):
		return exitUsage
	case is[*node.DataLossError](err):
		return exitDamaged
	case slices.ContainsFunc(refusals, isOne), isOne(config.ErrNoData),
		is[*raftlog.UnknownFormatError](err), is[*op.RefusedError](err):
		return exitRefused
	default:
		return exitFailed
	}
}

// nodeLogger returns the logger of the nodes of this process. What else the command says goes
// the same way from here on. A write for which there is no reader any more fails: its SIGPIPE
// would end the process (os/signal, "SIGPIPE").
func (a *app) nodeLogger(level, format string) (*slog.Logger, error) {
	if err := a.logLevel.UnmarshalText([]byte(level)); err != nil {
		return nil, &usageError{errors.New("the log level must be debug, info, warn or error, not " + quote(level))}
	}
	direct := newLogger(a.stderr, &a.logLevel, format)
	signal.Ignore(syscall.SIGPIPE)
	a.log = logqueue.New(a.stderr, func(leftOut int) error {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "the log's reader did not keep up, and lines are missing", 0)
		r.Add("lines_left_out", leftOut)
		return direct.Handler().Handle(context.Background(), r)
	})
	a.stderr = a.log
	log := newLogger(a.stderr, &a.logLevel, format)
	if format == "json" {
		a.last = log
	}
	return log, nil
}

// calm is a log handler that drops warnings while the nodes of dev start and stop: they rightly warn of those that are
// missing. Errors pass, but not the Raft library's own lines of any level: a node logs the consequences itself.
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

func (c calm) Enabled(ctx context.Context, level slog.Level) bool {
	if c.expected.Load() && level < slog.LevelError {
		return false
	}
	return c.Handler.Enabled(ctx, level)
}

func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	if slices.ContainsFunc(attrs, slog.String("part", "raft").Equal) {
		return slog.DiscardHandler
	}
	return calm{Handler: c.Handler.WithAttrs(attrs), expected: c.expected}
}
