package client

import (
	"context"
	"time"
)

// span is the time that a call has with all its tries. Its context is made when
// it is first asked for, because a context with a timer is the dearest part of a
// call, and most calls end with their first try, which has a timer of its own.
type span struct {
	ctx    context.Context
	end    time.Time
	cancel context.CancelFunc
}

func newSpan(ctx context.Context, d time.Duration) *span {
	return &span{ctx: ctx, end: time.Now().Add(d)}
}

// context returns the context that ends with the span.
func (s *span) context() context.Context {
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithDeadline(s.ctx, s.end)
	}
	return s.ctx
}

// present returns the context as far as it was made: what is done with it needs a
// bound of its own, no longer than the span.
func (s *span) present() context.Context { return s.ctx }

// close frees what the span holds.
func (s *span) close() {
	if s.cancel != nil {
		s.cancel()
	}
}
