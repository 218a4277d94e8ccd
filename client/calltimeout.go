package client

import (
	"context"
	"time"
)

// callTimeout is the time that a call has with all its tries. Its context is made when
// it is first asked for, because a context with a timer is the dearest part of a
// call, and most calls end with their first try, which has a timer of its own.
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

// present returns the context as far as it was made: what is done with it needs a
// bound of its own, no longer than the call's time.
func (t *callTimeout) present() context.Context { return t.ctx }

// close frees what it holds.
func (t *callTimeout) close() {
	if t.cancel != nil {
		t.cancel()
	}
}
