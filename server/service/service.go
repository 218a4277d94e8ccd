package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/docid"
)

const (
	// DefaultCallTimeout bounds every call, also of a caller without a deadline.
	// It is above the time a call waits for a leader (2 s), so that a call in
	// flight outlives an election and one without a quorum gets the reason. The wait
	// of an operation is kept to an eighth of it, so every call ends within 2.5 s,
	// also while the leader's disk hangs and no node has noticed.
	DefaultCallTimeout = 2100 * time.Millisecond
	// DefaultMaxInFlight is how many calls one node has in flight: a few times what
	// one round of the log takes of a node, so that the next round is always full,
	// and no call waits for more than a few rounds.
	DefaultMaxInFlight = 4096
)

// Proposer takes an encoded operation through the replicated log and returns
// its encoded result. Its errors are *outcome.Error. It bounds the wait by itself,
// for callers without a deadline: a timer for each call would be the dearest part
// of a small one.
type Proposer interface {
	Propose(ctx context.Context, operation []byte) ([]byte, error)
	// ProposeAll takes several operations through the log together and returns, in
	// their order, the outcome of each.
	ProposeAll(ctx context.Context, operations [][]byte) (results [][]byte, errs []error)
}

// Linearizer makes reads linearizable: after it returns nil, the local state is
// at least as new as the call. Its errors are *outcome.Error.
type Linearizer interface {
	Linearize(ctx context.Context) error
}

// Etags gives this node's own counters; *etags.Keeper is one. The database is
// folded. Errors are those of package etag.
type Etags interface {
	// NextBlock returns the first of n consecutive etags, 1 ≤ n ≤ MaxBlockSize.
	NextBlock(database string, n int) (first uint64, err error)
}

// Config is what a Service is made of. Everything but the limits, CaughtUp,
// OwnEtags, Hosts, ServerPrefix, Version and Logger must be given.
type Config struct {
	Proposer   Proposer
	Linearizer Linearizer
	State      State
	Etags      Etags
	Cluster    Cluster
	// Tag returns this node's tag, and whether the cluster has confirmed it. It
	// is called for most calls, so it must be fast.
	Tag func() (tag string, confirmed bool)
	// CaughtUp says that the state was as new as the cluster's once since the start;
	// nil for a node whose state always was. It is called for most calls, too.
	CaughtUp func() bool
	// OwnEtags returns this node's etag counters, in any order, as the caller's own;
	// nil for a node that shows none.
	OwnEtags func() []OwnEtag

	// Caller returns the caller of a context that WithCaller did not make; nil if
	// callers are not known.
	Caller func(ctx context.Context) Caller
	// Guarded keeps dangerous calls to the principals in Admins as long as there are
	// no roles; if Admins is empty, all are refused.
	Guarded bool
	Admins  []string

	// Hosts are names and addresses under which the node is called over HTTP, beside
	// those of the members: its own, and those it was told. See CheckHost.
	Hosts []string

	// Audit, if set, keeps the record of what changes the cluster, and of what else
	// AuditLevel says; empty means audit.Changes.
	Audit      Auditor
	AuditLevel audit.Level

	// ServerPrefix, if set, stands in the ids of this node's HiLo ranges in
	// place of the node tag.
	ServerPrefix string
	// CallTimeout bounds reads and changes of the membership; operations are bounded
	// by the Proposer. It must be longer than the time the cluster waits for a
	// leader. 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxInFlight is how many calls may be in flight at once; one more is
	// refused at once. 0 means DefaultMaxInFlight.
	MaxInFlight int
	// Version is the program's version, shown in the status.
	Version string
	// Logger hears of what callers must not see. nil logs nothing.
	Logger *slog.Logger
	// Events are told what the service does.
	Events Events
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
	// limiter counts for callers with limits of their own.
	limiter limiter
	// expected are the nodes that Join has asked to come.
	expected expected
	// denials bounds the records of denied calls, and denialsLeftOut counts those
	// without one since the last.
	denials        *rate.Limiter
	denialsLeftOut atomic.Int64
	// backups is how many are being written, and backupOf has the names of the callers
	// that read one.
	backups  atomic.Int64
	backupOf sync.Map
	// draining is set once, by Drain: enter lets no more calls in.
	draining atomic.Bool
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, denials: rate.NewLimiter(denialsPerSecond, denialsAtOnce)}, nil
}

// enter lets a call in, or refuses it at once: a queue would only make the
// callers behind it wait for answers they no longer want. A call that was let in
// ends with leave.
//
// Invariant: a call is counted before draining is looked at, so Drain, which
// does it the other way round, misses none.
func (s *Service) enter(ctx context.Context) (*limited, error) {
	caller := s.limitsOf(ctx)
	if err := s.admit(caller); err != nil {
		return nil, s.cfg.Events.refused(err)
	}
	return caller, nil
}

// admit is enter for a call whose refusal goes through finish.
func (s *Service) admit(caller *limited) *Error {
	if err := caller.enter(); err != nil {
		return err
	}
	if s.inFlight.Add(1) > int64(s.cfg.MaxInFlight) {
		s.leave(caller)
		return exhausted(ReasonOverloaded, "too many calls are in flight at this node", retryBusy, nil)
	}
	if s.draining.Load() {
		s.leave(caller)
		return unavailable(ReasonStopping, "the node is stopping", retryBusy, nil)
	}
	return nil
}

// MaxInFlight is how many calls may be in flight at once.
func (s *Service) MaxInFlight() int { return s.cfg.MaxInFlight }

// leave takes the limits of the caller from enter.
func (s *Service) leave(caller *limited) {
	s.inFlight.Add(-1)
	caller.leave()
}

// bounded gives ctx the deadline of the server, unless its own is sooner: a
// context of its own costs more than the rest of a small call.
func (s *Service) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= s.cfg.CallTimeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.cfg.CallTimeout)
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
	if known.Code == PermissionDenied {
		s.recordDenial(ctx, useCase, known.Message)
	}
	return s.cfg.Events.refused(known)
}
