package client

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// sharedTrace is the key under which the context of a shared call has its traceparent.
type sharedTrace struct{}

// traceparent returns the span of a call's caller; "" if there is none.
//
// The caller's function and not OpenTelemetry's instrumentation of gRPC finds it: that knows the
// Exchange stream, which outlives its calls, but not the calls that the stream carries.
func (c Config) traceparent(ctx context.Context) string {
	if c.TraceParent == nil {
		return ""
	}
	if shared, ok := ctx.Value(sharedTrace{}).(string); ok {
		return shared
	}
	return c.TraceParent(ctx)
}

// traced returns the context of a unary call, which names the caller's span in its metadata.
// Instrumentation in Config.DialOptions replaces it by a span of its own.
func (c Config) traced(ctx context.Context) context.Context {
	if parent := c.traceparent(ctx); parent != "" {
		return metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
	}
	return ctx
}
