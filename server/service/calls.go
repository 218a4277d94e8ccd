package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/idnode/idnode/server/apierror"
)

// calls admits calls, and reports their failures to callers, log and metrics.
type calls struct {
	*admission
	*auditing
	events  *Events
	timeout time.Duration
	turns   *turns
}

// call makes a call within the time of a call.
func call[Request, Response any](
	ctx context.Context, c *calls, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (Response, error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return untimedCall(within, c, useCase, req, do)
}

// turn waits until a call that works for long may run, and returns a function that ends its turn.
func (c *calls) turn(ctx context.Context) (end func(), err error) {
	end, err = c.turns.wait(ctx, c.Principal(ctx))
	if err != nil {
		return nil, apierror.Unavailable(apierror.ReasonOverloaded, "the time of the call ended while it waited for others of its kind",
			apierror.RetryBusy, err)
	}
	return end, nil
}

// Turn is turn within the time of a call, for work outside of a use case. No use case that takes a turn
// itself is called meanwhile.
func (c *calls) Turn(ctx context.Context) (end func(), err error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	end, err = c.turn(within)
	return end, c.finish(ctx, "Turn", err)
}

// untimedCall makes a call that bounds its time by itself, as the Proposer bounds that of an operation: a
// timer costs as much as a small call.
func untimedCall[Request, Response any](
	ctx context.Context, c *calls, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (res Response, err error) {
	caller := c.limitsOf(ctx)
	if refused := c.admit(caller); refused != nil {
		c.events.Refused(refused.Reason)
		return res, refused
	}
	defer c.leave(caller)
	answer, err := do(ctx, req)
	if err != nil {
		return res, c.finish(ctx, useCase, err)
	}
	return answer, nil
}

// finish logs the cause that the caller must not see, and returns err as an error that is nil
// only if err is.
func (c *calls) finish(ctx context.Context, useCase string, err error) error {
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
		c.recordDenial(ctx, useCase, known.Message)
	}
	c.events.Refused(known.Reason)
	return known
}
