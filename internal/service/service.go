package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/docid"
)

const (
	// DefaultCallTimeout bounds every call, also of a caller without a deadline.
	// It is well above the time a call waits for a leader (2 s), so that a call
	// under way outlives an election.
	DefaultCallTimeout = 10 * time.Second
	// DefaultMaxInFlight is how many calls one node has under way.
	DefaultMaxInFlight = 10_000
)

// Proposer takes an encoded operation through the replicated log and returns
// its encoded result. Its errors are *outcome.Error.
type Proposer interface {
	Propose(ctx context.Context, operation []byte) ([]byte, error)
}

// Linearizer makes reads linearizable: after it returns nil, the local state is
// at least as new as the call. Its errors are *outcome.Error.
type Linearizer interface {
	Linearize(ctx context.Context) error
}

// Etags gives this node's own counters; *EtagKeeper is one. The database is
// folded. Errors are those of package etag, or *Error.
type Etags interface {
	// NextBlock returns the first of n consecutive etags, 1 ≤ n ≤ MaxBlockSize.
	NextBlock(database string, n int) (first uint64, err error)
}

// Config is what a Service is made of. Everything but the limits, ServerPrefix,
// Version and Logger must be given.
type Config struct {
	Proposer   Proposer
	Linearizer Linearizer
	State      State
	Etags      Etags
	Cluster    Cluster
	// Tag returns this node's tag, and whether the cluster has confirmed it. It
	// is called for most calls, so it must be fast.
	Tag func() (tag string, confirmed bool)

	// ServerPrefix, if set, stands in the ids of this node's HiLo ranges in
	// place of the node tag.
	ServerPrefix string
	// CallTimeout bounds every call; it must be longer than the time the cluster
	// waits for a leader. 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxInFlight is how many calls may be under way at once; one more is
	// refused at once. 0 means DefaultMaxInFlight.
	MaxInFlight int
	// Version is the program's version, shown in the status.
	Version string
	// Logger hears of what callers must not see. nil logs nothing.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Proposer == nil, c.Linearizer == nil, c.State == nil, c.Etags == nil, c.Cluster == nil, c.Tag == nil:
		return errors.New("service: a dependency is missing")
	case c.CallTimeout < 0:
		return fmt.Errorf("service: the call timeout %s is negative", c.CallTimeout)
	case c.MaxInFlight < 0:
		return fmt.Errorf("service: the number of calls in flight %d is negative", c.MaxInFlight)
	}
	return ValidateServerPrefix(c.ServerPrefix)
}

// ValidateServerPrefix checks the server prefix of a node; the empty one is
// valid and means none.
func ValidateServerPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > maxServerPrefix {
		return fmt.Errorf("service: the server prefix has %d bytes, more than %d", len(prefix), maxServerPrefix)
	}
	var bad *docid.Error
	if err := docid.ValidateTag(prefix, docid.DefaultSeparator); errors.As(err, &bad) {
		return fmt.Errorf("service: the server prefix %s", bad.Detail)
	}
	return nil
}

// Service holds the use cases. It is safe for concurrent use.
type Service struct {
	cfg Config
	// inFlight counts the calls that enter has let in.
	inFlight atomic.Int64
	// draining is set once, by Drain: enter lets nobody in any more.
	draining atomic.Bool
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg}, nil
}

// enter lets a call in, or refuses it at once: a queue would only make the
// callers behind it wait for answers they no longer want. Whoever is let in
// calls leave.
//
// Invariant: a call is counted before draining is looked at, so Drain, which
// does it the other way round, misses none.
func (s *Service) enter() error {
	if s.inFlight.Add(1) > int64(s.cfg.MaxInFlight) {
		s.leave()
		return exhausted(ReasonOverloaded, "too many calls are under way at this node", retryBusy, nil)
	}
	if s.draining.Load() {
		s.leave()
		return unavailable(ReasonStopping, "the node is stopping", retryBusy, nil)
	}
	return nil
}

func (s *Service) leave() { s.inFlight.Add(-1) }

// bounded gives ctx the deadline of the server, unless its own is sooner: a
// context of its own costs more than the rest of a small call.
func (s *Service) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= s.cfg.CallTimeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.cfg.CallTimeout)
}

// Bounded gives ctx the deadline of the server, unless its own is sooner. Calls
// that share the context it returns need none of their own.
func (s *Service) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.bounded(ctx)
}

// confirmedTag returns the node's tag, or "" before the cluster confirmed it.
func (s *Service) confirmedTag() string {
	if tag, confirmed := s.cfg.Tag(); confirmed {
		return tag
	}
	return ""
}

// finish logs what the caller must not see and returns err as an error that is
// nil only if there is none.
func (s *Service) finish(ctx context.Context, useCase string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if !errors.As(err, &known) {
		known = internal(err)
	}
	if known.Code == Internal || known.Code == DataLoss {
		s.cfg.Logger.ErrorContext(ctx, "a call failed", "call", useCase, "reason", known.Reason, "error", known.Err)
	} else if s.cfg.Logger.Enabled(ctx, slog.LevelDebug) && known.Err != nil {
		s.cfg.Logger.DebugContext(ctx, "a call was refused", "call", useCase, "reason", known.Reason, "error", known.Err)
	}
	return known
}
