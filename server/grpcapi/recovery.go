package grpcapi

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/server/service"
)

// recoverUnary turns a panic in a handler into INTERNAL for that caller alone: a bad request must
// not end a node that serves thousands of others.
func (l *requestLog) recoverUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler,
) (response any, err error) {
	defer l.recovered(ctx, &err)
	return handler(ctx, request)
}

func (l *requestLog) recoverStream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer l.recovered(stream.Context(), &err)
	return handler(server, stream)
}

// recovered is deferred: it ends a panic with an error.
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
