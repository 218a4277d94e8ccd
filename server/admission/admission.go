// Package admission decides which calls a node makes, and records those that change the cluster.
//
// It knows callers, their rights and limits, the calls in flight, the turns of calls that work for long, and the
// audit log. It counts for its own node alone: a call must be refused before it is proposed.
package admission

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/server/apierror"
)

// Control admits calls, and reports their failures to callers, log and metrics.
type Control struct {
	*bounds
	*auditing
	refused func(reason string)
	timeout time.Duration
	turns   *turns
}

// Config holds a Control's dependencies and limits.
type Config struct {
	State State
	// HasEtags reports whether a database, folded, has a counter of this node's etags.
	HasEtags func(database string) bool
	// CaughtUp reports whether the state has been as new as the cluster's at some time since the start.
	CaughtUp func() bool
	// From returns the caller of a context that WithCaller did not make.
	From func(ctx context.Context) Caller
	// Guarded keeps dangerous calls to the principals in Admins as long as there are no roles.
	Guarded bool
	Admins  []string
	// Audit may be nil. Tag returns this node's tag for the records, or "" before the cluster confirmed it.
	Audit Auditor
	Tag   func() string
	// Timeout bounds every call, and MaxInFlight the calls in flight.
	Timeout     time.Duration
	MaxInFlight int
	Logger      *slog.Logger
	// Refused is called for each call that ends with an error, with its reason.
	Refused func(reason string)
}

// New returns a Control.
func New(cfg Config) *Control {
	auth := &authorizer{state: cfg.State, from: cfg.From, guarded: cfg.Guarded, admins: cfg.Admins}
	return &Control{
		bounds: &bounds{authorizer: auth, hasEtags: cfg.HasEtags, caughtUp: cfg.CaughtUp, most: cfg.MaxInFlight},
		auditing: &auditing{
			log: cfg.Audit, auth: auth, tag: cfg.Tag, logger: cfg.Logger,
			denials: rate.NewLimiter(denialsPerSecond, denialsAtOnce),
		},
		refused: cfg.Refused, timeout: cfg.Timeout, turns: newTurns(),
	}
}

// Call makes a call within the time of a call.
func Call[Request, Response any](
	ctx context.Context, c *Control, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (Response, error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return UntimedCall(within, c, useCase, req, do)
}

// AwaitTurn waits until a call that works for long may run, and returns a function that ends its turn.
func (c *Control) AwaitTurn(ctx context.Context) (end func(), err error) {
	end, err = c.turns.wait(ctx, c.Principal(ctx))
	if err != nil {
		return nil, apierror.Unavailable(apierror.ReasonOverloaded, "the time of the call ended while it waited for others of its kind",
			apierror.RetryBusy, err)
	}
	return end, nil
}

// Turn is AwaitTurn within the time of a call, for work outside of a use case. No use case that takes a turn
// itself is called meanwhile.
func (c *Control) Turn(ctx context.Context) (end func(), err error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	end, err = c.AwaitTurn(within)
	return end, c.Finish(ctx, "Turn", err)
}

// UntimedCall makes a call that bounds its time by itself, as the Proposer bounds that of an operation: a
// timer costs as much as a small call.
func UntimedCall[Request, Response any](
	ctx context.Context, c *Control, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (res Response, err error) {
	caller := c.LimitsOf(ctx)
	if refused := c.Admit(caller); refused != nil {
		c.refused(refused.Reason)
		return res, refused
	}
	defer c.Leave(caller)
	answer, err := do(ctx, req)
	if err != nil {
		return res, c.Finish(ctx, useCase, err)
	}
	return answer, nil
}

// Finish logs the cause that the caller must not see, and returns err as an error that is nil
// only if err is.
func (c *Control) Finish(ctx context.Context, useCase string, err error) error {
	if err == nil {
		return nil
	}
	known := apierror.Of(err)
	if known.Code == apierror.CodeInternal || known.Code == apierror.CodeDataLoss {
		c.logger.ErrorContext(ctx, "a call failed", "call", useCase, "reason", known.Reason, "error", known.Err)
	} else if c.logger.Enabled(ctx, slog.LevelDebug) && known.Err != nil {
		c.logger.DebugContext(ctx, "a call was refused", "call", useCase, "reason", known.Reason, "error", known.Err)
	}
	if known.Code == apierror.CodePermissionDenied {
		c.RecordDenial(ctx, useCase, known.Message)
	}
	c.refused(known.Reason)
	return known
}
