package client

import (
	"context"
	"time"
)

// callTimeout is the time of a call with all its tries. Its context is made on first use,
// because a context with a timer is the most expensive part of a call, and most calls end
// with their first try, which has a timer of its own.
type callTimeout struct {
	ctx    context.Context
	end    time.Time
	cancel context.CancelFunc
}

func newCallTimeout(ctx context.Context, d time.Duration) *callTimeout {
	return &callTimeout{ctx: ctx, end: time.Now().Add(d)}
}

// context returns the context that ends with the call's time.
func (t *callTimeout) context() context.Context {
	if t.cancel == nil {
		t.ctx, t.cancel = context.WithDeadline(t.ctx, t.end)
	}
	return t.ctx
}

// present returns the call's context if it was made, else the caller's. The user must bound
// its use by no more than the call's time.
func (t *callTimeout) present() context.Context { return t.ctx }

// close releases the context.
func (t *callTimeout) close() {
	if t.cancel != nil {
		t.cancel()
	}
}
