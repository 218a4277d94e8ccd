package grpcapi

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"

	"github.com/idnode/idnode/internal/service"
)

// recovered turns a panic in a handler into INTERNAL for that caller alone: one
// bad request must not end a node that serves thousands of others.
func recovered(logger *slog.Logger) recovery.Option {
	return recovery.WithRecoveryHandlerContext(func(ctx context.Context, p any) error {
		return panicked(ctx, logger, p)
	})
}

// panicked logs a panic from within the function that recovered from it, and
// returns what its caller is told.
func panicked(ctx context.Context, logger *slog.Logger, p any) error {
	logger.ErrorContext(ctx, "a call panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return statusError(&service.Error{
		Code: service.Internal, Reason: service.ReasonInternal,
		Message: "internal error; the node's log says more",
	})
}
