package service

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// calls lets calls in, and tells their callers, the log and the metrics how they fail.
type calls struct {
	*admission
	*auditing
	events  *Events
	timeout time.Duration
	turns   turns
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
	end, err = c.turns.wait(ctx, c.Principal(ctx))
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

// callTime is the context of a call: it ends with its caller's, and when the time of a call is
// over. Its timer is made when the first goroutine waits for the end. Operations do not wait,
// because the Proposer bounds them, and a timer costs as much as a small call.
type callTime struct {
	context.Context
	end time.Time

	mu sync.Mutex
	// timed has the timer; nil without a timer.
	timed  context.Context
	cancel context.CancelFunc
}

// within returns the context of a call that begins now. It is given up by over.
func (c *calls) within(ctx context.Context) *callTime {
	t := &callTime{Context: ctx, end: time.Now().Add(c.timeout)}
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(t.end) {
		t.end = sooner
	}
	return t
}

func (t *callTime) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

func (t *callTime) Deadline() (time.Time, bool) { return t.end, true }

func (t *callTime) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timed == nil {
		t.timed, t.cancel = context.WithDeadline(t.Context, t.end)
	}
	return t.timed.Done()
}

func (t *callTime) Err() error {
	if timed, ok := t.waited(); ok {
		return timed.Err()
	}
	if err := t.Context.Err(); err != nil || time.Now().Before(t.end) {
		return err
	}
	<-t.Done() // So that all callers see the same end.
	return context.DeadlineExceeded
}

// Value implements context.Context. It gives the timer's cancellation to contexts derived from
// this one, so that they need no goroutine for it.
func (t *callTime) Value(key any) any {
	if timed, ok := t.waited(); ok {
		return timed.Value(key)
	}
	return t.Context.Value(key)
}

// waited returns the timer's context, if there is a timer.
func (t *callTime) waited() (context.Context, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timed, t.timed != nil
}

// untimed proposes for calls that have not waited for anything under the contexts of their
// callers, so that no timer is made.
type untimed struct{ Proposer }

func (u untimed) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	return u.Proposer.Propose(callersOwn(ctx), operation)
}

func (u untimed) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	return u.Proposer.ProposeAll(callersOwn(ctx), operations)
}

func callersOwn(ctx context.Context) context.Context {
	if t, ok := ctx.(*callTime); ok {
		if _, waited := t.waited(); !waited {
			return t.Context
		}
	}
	return ctx
}
