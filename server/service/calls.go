package service

import (
	"context"
	"log/slog"
	"time"
)

// calls lets calls in, and tells their callers, the log and the metrics how they fail.
type calls struct {
	*admission
	*auditing
	events *Events
	logger *slog.Logger
	// timeout is Config.CallTimeout.
	timeout time.Duration
	// turns are those of calls that work for long.
	turns turns
}

// call runs a use case within the time of a call.
func call[Request, Response any](
	ctx context.Context, c *calls, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (Response, error) {
	within := c.within(ctx)
	defer within.over()
	return longCall(within, c, useCase, req, do)
}

// turn waits until it is the turn of a call that works for long, and returns what ends it.
func (c *calls) turn(ctx context.Context) (end func(), err error) {
	end, err = c.turns.wait(ctx, c.caller(ctx).Principal)
	if err != nil {
		return nil, unavailable(ReasonOverloaded, "the time of the call ended while others of its kind went on", retryBusy, err)
	}
	return end, nil
}

// Turn waits until it is the turn of work that takes long, and returns what ends it. No
// use case is called meanwhile that takes a turn itself.
func (c *calls) Turn(ctx context.Context) (end func(), err error) {
	within := c.within(ctx)
	defer within.over()
	end, err = c.turn(within)
	return end, c.finish(ctx, "Turn", err)
}

// longCall makes a call that bounds its time by itself.
func longCall[Request, Response any](
	ctx context.Context, c *calls, useCase string, req Request, do func(context.Context, Request) (Response, error),
) (res Response, err error) {
	caller, refused := c.enter(ctx)
	if refused != nil {
		return res, c.events.refused(refused)
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
	known := ErrorOf(err)
	if known.Code == Internal || known.Code == DataLoss {
		c.logger.ErrorContext(ctx, "a call failed", "call", useCase, "reason", known.Reason, "error", known.Err)
	} else if c.logger.Enabled(ctx, slog.LevelDebug) && known.Err != nil {
		c.logger.DebugContext(ctx, "a call was refused", "call", useCase, "reason", known.Reason, "error", known.Err)
	}
	if known.Code == PermissionDenied {
		c.recordDenial(ctx, useCase, known.Message)
	}
	return c.events.refused(known)
}
