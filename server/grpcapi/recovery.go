package grpcapi

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/idnode/idnode/server/service"
)

// recovered is deferred: it turns a panic in a handler into INTERNAL for that caller alone. A bad
// request must not end a node that serves thousands of others.
func (l *requestLog) recovered(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		*err = panicked(ctx, l.logger, p)
	}
}

// panicked logs a panic from within the function that recovered from it, and returns the caller's
// error.
func panicked(ctx context.Context, logger *slog.Logger, p any) error {
	logger.ErrorContext(ctx, "a call panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return statusError(service.ErrorOf(fmt.Errorf("panic: %v", p)))
}
